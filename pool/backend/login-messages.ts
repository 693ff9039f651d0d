// Writes the messages of our own logins to PostgreSQL and reads the server's. Pure.
import { encodeFrame } from "../wire/backend-messages.ts";
import {
  Frontend,
  HEADER_BYTES,
  concatBytes,
  readInt32,
  writeInt32,
} from "../wire/message-types.ts";

const PROTOCOL_3_0 = 196_608;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What the server asks for: PostgreSQL protocol, "Message Formats": Authentication…. */
export type AuthenticationRequest =
  | { readonly kind: "ok" }
  | { readonly kind: "cleartext" }
  | { readonly kind: "md5"; readonly salt: Uint8Array }
  | { readonly kind: "sasl"; readonly mechanisms: readonly string[] }
  | { readonly kind: "sasl-continue"; readonly data: Uint8Array }
  | { readonly kind: "sasl-final"; readonly data: Uint8Array }
  /** GSSAPI, SSPI, Kerberos and whatever comes. */
  | { readonly kind: "unsupported"; readonly code: number };

/** StartupMessage of protocol 3.0. Undefined when a name or a value can't be sent: a NUL would start another parameter. */
export function encodeStartup(
  parameters: Readonly<Record<string, string>>,
): Uint8Array | undefined {
  let text = "";
  for (const [name, value] of Object.entries(parameters)) {
    // An empty name is the terminator.
    if (name === "" || name.includes("\0") || value.includes("\0")) return undefined;
    text += `${name}\0${value}\0`;
  }
  const body = encoder.encode(`${text}\0`);
  const packet = new Uint8Array(8 + body.length);
  writeInt32(packet, 0, packet.length);
  writeInt32(packet, 4, PROTOCOL_3_0);
  packet.set(body, 8);
  return packet;
}

/** PasswordMessage; `password` has no NUL in it. */
export function encodePassword(password: Uint8Array): Uint8Array {
  return encodeFrame(Frontend.PASSWORD, concatBytes([password, new Uint8Array(1)]));
}

/** SASLInitialResponse. */
export function encodeSaslInitial(mechanism: string, message: Uint8Array): Uint8Array {
  const size = new Uint8Array(4);
  writeInt32(size, 0, message.length);
  const name = encoder.encode(`${mechanism}\0`);
  return encodeFrame(Frontend.PASSWORD, concatBytes([name, size, message]));
}

/** SASLResponse. */
export function encodeSaslResponse(message: Uint8Array): Uint8Array {
  return encodeFrame(Frontend.PASSWORD, message);
}

/** Undefined when the frame is malformed. */
export function readAuthentication(frame: Uint8Array): AuthenticationRequest | undefined {
  if (frame.length < HEADER_BYTES + 4) return undefined;
  const code = readInt32(frame, HEADER_BYTES);
  const body = frame.subarray(HEADER_BYTES + 4);
  switch (code) {
    case 0:
      return body.length === 0 ? { kind: "ok" } : undefined;
    case 3:
      return body.length === 0 ? { kind: "cleartext" } : undefined;
    case 5:
      return body.length === 4 ? { kind: "md5", salt: body } : undefined;
    case 10:
      return readMechanisms(body);
    case 11:
      return { kind: "sasl-continue", data: body };
    case 12:
      return { kind: "sasl-final", data: body };
    default:
      return { kind: "unsupported", code };
  }
}

/** Names that each end with NUL, then an empty one. */
function readMechanisms(body: Uint8Array): AuthenticationRequest | undefined {
  if (body.at(-1) !== 0) return undefined;
  const names = decoder.decode(body.subarray(0, -1)).split("\0");
  if (names.pop() !== "" || names.length === 0 || names.includes("")) return undefined;
  return { kind: "sasl", mechanisms: names };
}

export interface CancelKey {
  readonly processId: number;
  /** 4 bytes from a server that speaks protocol 3.0. */
  readonly secretKey: Uint8Array;
}

/** BackendKeyData; undefined when the key has another size than protocol 3.0 gives it. */
export function readBackendKey(frame: Uint8Array): CancelKey | undefined {
  if (frame.length !== HEADER_BYTES + 8) return undefined;
  return {
    processId: readInt32(frame, HEADER_BYTES),
    secretKey: frame.slice(HEADER_BYTES + 4),
  };
}

/** NegotiateProtocolVersion: we ask for the lowest version of the protocol, so only a refused option stands in the way. */
export function acceptsProtocol(frame: Uint8Array): boolean {
  return frame.length >= HEADER_BYTES + 8 && readInt32(frame, HEADER_BYTES + 4) === 0;
}
