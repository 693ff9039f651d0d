// Writes the backend messages that the gateway says itself and reads the ones that state depends on. Pure.
import {
  Backend,
  HEADER_BYTES,
  Status,
  concatBytes,
  readInt32,
  writeInt32,
} from "./message-types.ts";
import { utf8 } from "./text.ts";

const encoder = new TextEncoder();

/** The fields of an ErrorResponse or NoticeResponse by their one-letter codes ("Error and Notice Message Fields"). */
export type ErrorFields = ReadonlyMap<string, string>;

export interface ErrorText {
  readonly severity: "ERROR" | "FATAL" | "PANIC";
  readonly sqlState: string;
  readonly message: string;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
}

/** Tells an operator which program raised the error: the field `R`, routine, of everything the gateway says itself. */
export const OWN_ROUTINE = "walgate";

export function encodeErrorResponse(error: ErrorText): Uint8Array {
  return encodeFields(Backend.ERROR_RESPONSE, error);
}

export function encodeNotice(
  notice: Omit<ErrorText, "severity"> & { readonly severity: "NOTICE" | "WARNING" },
): Uint8Array {
  return encodeFields(Backend.NOTICE_RESPONSE, notice);
}

function encodeFields(
  type: number,
  error: Omit<ErrorText, "severity"> & { readonly severity: string },
): Uint8Array {
  const fields: [string, string | undefined][] = [
    ["S", error.severity],
    ["V", error.severity],
    ["C", error.sqlState],
    ["M", error.message],
    ["D", error.detail],
    ["H", error.hint],
    ["R", OWN_ROUTINE],
  ];
  let text = "";
  for (const [code, value] of fields) {
    if (value !== undefined) text += `${code}${value.replaceAll("\0", "")}\0`;
  }
  return encodeFrame(type, encoder.encode(`${text}\0`));
}

export function encodeFrame(type: number, body: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + body.length);
  frame[0] = type;
  writeInt32(frame, 1, frame.length - 1);
  frame.set(body, HEADER_BYTES);
  return frame;
}

export function encodeReadyForQuery(status: number): Uint8Array {
  return new Uint8Array([Backend.READY_FOR_QUERY, 0, 0, 0, 5, status]);
}

export function encodeParameterStatus(name: string, value: string): Uint8Array {
  return encodeFrame(Backend.PARAMETER_STATUS, encoder.encode(`${name}\0${value}\0`));
}

export function encodeBackendKeyData(processId: number, secretKey: Uint8Array): Uint8Array {
  const head = new Uint8Array(4);
  writeInt32(head, 0, processId);
  return encodeFrame(Backend.BACKEND_KEY_DATA, concatBytes([head, secretKey]));
}

/** "NegotiateProtocolVersion": the newest minor version we speak, and the options we did not understand. */
export function encodeNegotiateProtocolVersion(
  newest: number,
  unknown: readonly string[],
): Uint8Array {
  const head = new Uint8Array(8);
  writeInt32(head, 0, newest);
  writeInt32(head, 4, unknown.length);
  const names = encoder.encode(unknown.map((name) => `${name}\0`).join(""));
  return encodeFrame(Backend.NEGOTIATE_PROTOCOL_VERSION, concatBytes([head, names]));
}

/** Authentication requests: 0 Ok, 3 CleartextPassword, 10 SASL, 11 SASLContinue, 12 SASLFinal. */
export function encodeAuthentication(code: number, body: Uint8Array = EMPTY): Uint8Array {
  const head = new Uint8Array(4);
  writeInt32(head, 0, code);
  return encodeFrame(Backend.AUTHENTICATION, concatBytes([head, body]));
}

const EMPTY = new Uint8Array(0);

/** ReadyForQuery with status idle. */
export const READY_IDLE_FRAME = encodeReadyForQuery(Status.IDLE);
export const PARSE_COMPLETE_FRAME = new Uint8Array([Backend.PARSE_COMPLETE, 0, 0, 0, 4]);
export const CLOSE_COMPLETE_FRAME = new Uint8Array([Backend.CLOSE_COMPLETE, 0, 0, 0, 4]);

/** Fields of an ErrorResponse or NoticeResponse frame; a malformed end is left out. */
export function readErrorFields(frame: Uint8Array): ErrorFields {
  const fields = new Map<string, string>();
  let offset = HEADER_BYTES;
  while (offset < frame.length && frame[offset] !== 0) {
    const end = frame.indexOf(0, offset);
    if (end < 0) break;
    fields.set(String.fromCharCode(frame[offset] ?? 0), utf8(frame, offset + 1, end));
    offset = end + 1;
  }
  return fields;
}

export function readCommandTag(frame: Uint8Array): string {
  const end = frame.indexOf(0, HEADER_BYTES);
  return utf8(frame, HEADER_BYTES, end < 0 ? frame.length : end);
}

/** Name and value, or undefined when the frame is malformed. */
export function readParameterStatus(frame: Uint8Array): readonly [string, string] | undefined {
  const nameEnd = frame.indexOf(0, HEADER_BYTES);
  if (nameEnd < 0) return undefined;
  const valueEnd = frame.indexOf(0, nameEnd + 1);
  if (valueEnd < 0) return undefined;
  return [utf8(frame, HEADER_BYTES, nameEnd), utf8(frame, nameEnd + 1, valueEnd)];
}

/** The first column of a DataRow as text; undefined when it is NULL, absent or malformed. */
export function readFirstColumn(frame: Uint8Array): string | undefined {
  const cellOffset = HEADER_BYTES + 2;
  if (frame.length < cellOffset + 4) return undefined;
  const size = readInt32(frame, cellOffset);
  if (size < 0 || cellOffset + 4 + size > frame.length) return undefined;
  return utf8(frame, cellOffset + 4, cellOffset + 4 + size);
}
