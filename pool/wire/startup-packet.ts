// The packets that come before the first typed message: StartupMessage, SSLRequest, GSSENCRequest, CancelRequest. Pure.
import { readInt32 } from "./message-types.ts";

/** A longer first packet is refused before it is read: PostgreSQL's MAX_STARTUP_PACKET_LENGTH is 10,000. */
export const STARTUP_PACKET_MAX = 10_000;

const CANCEL_REQUEST = 80_877_102;
const SSL_REQUEST = 80_877_103;
const GSSENC_REQUEST = 80_877_104;

export interface StartupMessage {
  readonly kind: "startup";
  readonly protocolMinor: number;
  readonly parameters: ReadonlyMap<string, string>;
}

export type StartupPacket =
  | StartupMessage
  | { readonly kind: "ssl" }
  | { readonly kind: "gssenc" }
  | { readonly kind: "cancel"; readonly processId: number; readonly secretKey: Uint8Array }
  | { readonly kind: "invalid"; readonly reason: string };

/** Bytes of the packet that `bytes` begins with: its length field, once four bytes are there; a length that can't be is invalid. */
export function startupPacketSize(bytes: Uint8Array): number | "incomplete" | "invalid" {
  if (bytes.length < 4) return "incomplete";
  const size = readInt32(bytes, 0);
  if (size < 8 || size > STARTUP_PACKET_MAX) return "invalid";
  return size;
}

/** `packet` is whole, as startupPacketSize measured it. */
export function readStartupPacket(packet: Uint8Array): StartupPacket {
  const code = readInt32(packet, 4);
  if (code === SSL_REQUEST && packet.length === 8) return { kind: "ssl" };
  if (code === GSSENC_REQUEST && packet.length === 8) return { kind: "gssenc" };
  if (code === CANCEL_REQUEST) return readCancelRequest(packet);
  const major = code >>> 16;
  if (major !== 3) {
    return {
      kind: "invalid",
      reason: `unsupported frontend protocol ${major}.${code & 0xffff}: server supports 3.0 to 3.0`,
    };
  }
  return readParameters(packet, code & 0xffff);
}

function readCancelRequest(packet: Uint8Array): StartupPacket {
  // Protocol 3.0 keys are 4 bytes; 3.2 allows up to 256.
  const keyBytes = packet.length - 12;
  if (keyBytes < 4 || keyBytes > 256) return { kind: "invalid", reason: "invalid cancel request" };
  return {
    kind: "cancel",
    processId: readInt32(packet, 8),
    secretKey: packet.slice(12),
  };
}

function readParameters(packet: Uint8Array, protocolMinor: number): StartupPacket {
  const decoder = new TextDecoder();
  const parameters = new Map<string, string>();
  let offset = 8;
  while (offset < packet.length - 1) {
    const nameEnd = packet.indexOf(0, offset);
    // An empty name is the terminator.
    if (nameEnd === offset) break;
    const valueEnd = nameEnd < 0 ? -1 : packet.indexOf(0, nameEnd + 1);
    if (valueEnd < 0) break;
    parameters.set(
      decoder.decode(packet.subarray(offset, nameEnd)),
      decoder.decode(packet.subarray(nameEnd + 1, valueEnd)),
    );
    offset = valueEnd + 1;
  }
  if (offset !== packet.length - 1 || packet[offset] !== 0) {
    return {
      kind: "invalid",
      reason: "invalid startup packet layout: expected terminator as last byte",
    };
  }
  return { kind: "startup", protocolMinor, parameters };
}
