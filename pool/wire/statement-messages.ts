// Writes the messages that run one statement with text parameters by the extended protocol, for callers who have no wire bytes of their own.
import { Frontend, writeInt32 } from "./message-types.ts";

/** Bind counts its parameters in 16 bits ("Message Formats": Bind). */
export const PARAMETERS_MAX = 65_535;

/** Sizes without the texts: message types, lengths, terminating NULs, counts. */
const PARSE_BYTES = 9;
const BIND_BYTES = 13;
const DESCRIBE_BYTES = 7;
const EXECUTE_BYTES = 10;
const PARAMETER_BYTES = 4;
/** The length of NULL. */
const NULL_SIZE = -1;
const PORTAL = 0x50;

export interface StatementMessages {
  /** Of the prepared statement, ASCII; empty is the unnamed one. */
  readonly name?: string;
  readonly text: string;
  /** PostgreSQL's text, or null. At most PARAMETERS_MAX. */
  readonly params: readonly (string | null)[];
}

/**
 * Parse, Bind, Describe and Execute of the statement and the unnamed portal, without a Sync. No parameter type is declared, so PostgreSQL
 * infers each; results come as text. The texts hold no NUL. All of it is one array, filled in one pass, for each request pays for it.
 */
export function encodeStatement({ name = "", text, params }: StatementMessages): Uint8Array {
  const parseBytes = PARSE_BYTES + name.length + Buffer.byteLength(text);
  let bindBytes = BIND_BYTES + name.length;
  for (const value of params) {
    bindBytes += PARAMETER_BYTES + (value === null ? 0 : Buffer.byteLength(value));
  }
  const bytes = new Uint8Array(parseBytes + bindBytes + DESCRIBE_BYTES + EXECUTE_BYTES);
  // What is not written stays 0: terminating NULs, no declared types, no format codes (all text), no limit of rows.
  bytes[0] = Frontend.PARSE;
  writeInt32(bytes, 1, parseBytes - 1);
  writeText(bytes, 5, name);
  writeText(bytes, 6 + name.length, text);
  writeBind(bytes, parseBytes, bindBytes, name, params);
  let at = parseBytes + bindBytes;
  bytes[at] = Frontend.DESCRIBE;
  writeInt32(bytes, at + 1, DESCRIBE_BYTES - 1);
  bytes[at + 5] = PORTAL;
  at += DESCRIBE_BYTES;
  bytes[at] = Frontend.EXECUTE;
  writeInt32(bytes, at + 1, EXECUTE_BYTES - 1);
  return bytes;
}

function writeBind(
  bytes: Uint8Array,
  start: number,
  size: number,
  name: string,
  params: readonly (string | null)[],
): void {
  bytes[start] = Frontend.BIND;
  writeInt32(bytes, start + 1, size - 1);
  writeText(bytes, start + 6, name);
  let at = start + 9 + name.length;
  bytes[at] = params.length >>> 8;
  bytes[at + 1] = params.length;
  at += 2;
  for (const value of params) {
    const valueBytes = value === null ? NULL_SIZE : writeText(bytes, at + PARAMETER_BYTES, value);
    writeInt32(bytes, at, valueBytes);
    at += PARAMETER_BYTES + Math.max(valueBytes, 0);
  }
}

/** Returns its length in bytes. */
function writeText(bytes: Uint8Array, at: number, text: string): number {
  return text === "" ? 0 : Buffer.prototype.utf8Write.call(bytes, text, at, bytes.length - at);
}
