// The message type bytes of the PostgreSQL protocol, version 3 ("Message Formats"), and the sizes every frame shares.

/** Type byte and 32-bit length; the length counts itself but not the type. */
export const HEADER_BYTES = 5;
/** Messages up to this size are handled whole; larger ones are streamed once their prefix of this size was read. */
export const WHOLE_FRAME_MAX = 65_536;

export const Frontend = {
  BIND: 0x42,
  CLOSE: 0x43,
  COPY_DATA: 0x64,
  COPY_DONE: 0x63,
  COPY_FAIL: 0x66,
  DESCRIBE: 0x44,
  EXECUTE: 0x45,
  FLUSH: 0x48,
  FUNCTION_CALL: 0x46,
  PARSE: 0x50,
  /** PasswordMessage, SASLInitialResponse and SASLResponse share it. */
  PASSWORD: 0x70,
  QUERY: 0x51,
  SYNC: 0x53,
  TERMINATE: 0x58,
} as const;

export const Backend = {
  AUTHENTICATION: 0x52,
  BACKEND_KEY_DATA: 0x4b,
  BIND_COMPLETE: 0x32,
  CLOSE_COMPLETE: 0x33,
  COMMAND_COMPLETE: 0x43,
  COPY_BOTH_RESPONSE: 0x57,
  COPY_DATA: 0x64,
  COPY_DONE: 0x63,
  COPY_IN_RESPONSE: 0x47,
  COPY_OUT_RESPONSE: 0x48,
  DATA_ROW: 0x44,
  EMPTY_QUERY_RESPONSE: 0x49,
  ERROR_RESPONSE: 0x45,
  FUNCTION_CALL_RESPONSE: 0x56,
  NEGOTIATE_PROTOCOL_VERSION: 0x76,
  NO_DATA: 0x6e,
  NOTICE_RESPONSE: 0x4e,
  NOTIFICATION_RESPONSE: 0x41,
  PARAMETER_DESCRIPTION: 0x74,
  PARAMETER_STATUS: 0x53,
  PARSE_COMPLETE: 0x31,
  PORTAL_SUSPENDED: 0x73,
  READY_FOR_QUERY: 0x5a,
  ROW_DESCRIPTION: 0x54,
} as const;

/** Transaction status byte of ReadyForQuery. */
export const Status = {
  IDLE: 0x49,
  IN_TRANSACTION: 0x54,
  FAILED: 0x45,
} as const;

/** Reads the 32-bit big-endian integer at `offset`; the caller has checked that four bytes are there. */
export function readInt32(bytes: Uint8Array, offset: number): number {
  return (
    ((bytes[offset] ?? 0) << 24) |
    ((bytes[offset + 1] ?? 0) << 16) |
    ((bytes[offset + 2] ?? 0) << 8) |
    (bytes[offset + 3] ?? 0)
  );
}

export function writeInt32(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 24;
  bytes[offset + 1] = value >>> 16;
  bytes[offset + 2] = value >>> 8;
  bytes[offset + 3] = value;
}

/** Part of a chunk that was read from a socket. A view of its own would cost more than reading the message does. */
export interface Span {
  readonly chunk: Uint8Array;
  readonly start: number;
  /** Behind the last byte. */
  readonly end: number;
}

/** Copies a part of `source` to `target` at `at`, without a view of either. */
export function copyRange(
  target: Uint8Array,
  at: number,
  source: Uint8Array,
  start: number,
  end: number,
): void {
  if (end - start <= LOOP_BYTES_MAX) {
    for (let i = start; i < end; i++) target[at + i - start] = source[i] ?? 0;
  } else if (start === 0 && end === source.length) {
    target.set(source, at);
  } else {
    Buffer.prototype.copy.call(source, target, at, start, end);
  }
}

/** True when `bytes` are what lies in `source` from `start` to `end`. */
export function isRange(
  bytes: Uint8Array,
  source: Uint8Array,
  start: number,
  end: number,
): boolean {
  if (bytes.length !== end - start) return false;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== source[start + i]) return false;
  return true;
}

/** Up to here a loop is faster than a call into the runtime. */
const LOOP_BYTES_MAX = 24;

export function concatBytes(pieces: readonly Uint8Array[]): Uint8Array {
  let size = 0;
  for (const piece of pieces) size += piece.length;
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}
