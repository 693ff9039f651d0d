// Reads the few fields of frontend messages that routing depends on, and writes the ones that renaming changes. Pure.
import { Frontend, HEADER_BYTES, copyRange, readInt32, writeInt32 } from "./message-types.ts";
import { latin1 } from "./text.ts";

const encoder = new TextEncoder();

/** Index of the NUL that ends the string at `from`, or -1 when the message ends first. */
function endOfString(chunk: Uint8Array, from: number, end: number): number {
  // Most names are empty.
  const at = chunk[from] === 0 ? from : chunk.indexOf(0, from);
  return at < end ? at : -1;
}

// Each reads the whole message that lies in `chunk` from `start` to `end`; offsets are the chunk's. Undefined: it is malformed.

/** Query: where its text ends, which begins behind the header. */
export function readQuery(
  chunk: Uint8Array,
  start: number = 0,
  end: number = chunk.length,
): number | undefined {
  const textEnd = endOfString(chunk, start + HEADER_BYTES, end);
  return textEnd === end - 1 ? textEnd : undefined;
}

export interface ParseMessage {
  /** Latin-1 of the statement's name; empty is the unnamed statement. */
  readonly name: string;
  /** Where the query text begins: from here on the message is the same under any name. */
  readonly tailOffset: number;
  readonly textEnd: number;
}

export function readParse(
  chunk: Uint8Array,
  start: number = 0,
  end: number = chunk.length,
): ParseMessage | undefined {
  const nameEnd = endOfString(chunk, start + HEADER_BYTES, end);
  if (nameEnd < 0) return undefined;
  const textEnd = endOfString(chunk, nameEnd + 1, end);
  if (textEnd < 0 || textEnd + 3 > end) return undefined;
  const typeCount = ((chunk[textEnd + 1] ?? 0) << 8) | (chunk[textEnd + 2] ?? 0);
  if (textEnd + 3 + typeCount * 4 !== end) return undefined;
  return {
    name: latin1(chunk, start + HEADER_BYTES, nameEnd),
    tailOffset: nameEnd + 1,
    textEnd,
  };
}

export interface BindMessage {
  readonly statement: string;
  /** Where the statement's name begins, and where what follows its NUL begins. */
  readonly statementOffset: number;
  readonly tailOffset: number;
}

/** Also reads a prefix of a Bind, as long as both names are in it. */
export function readBind(
  chunk: Uint8Array,
  start: number = 0,
  end: number = chunk.length,
): BindMessage | undefined {
  const portalEnd = endOfString(chunk, start + HEADER_BYTES, end);
  if (portalEnd < 0) return undefined;
  const statementEnd = endOfString(chunk, portalEnd + 1, end);
  if (statementEnd < 0) return undefined;
  return {
    statement: latin1(chunk, portalEnd + 1, statementEnd),
    statementOffset: portalEnd + 1,
    tailOffset: statementEnd + 1,
  };
}

export interface NamedObject {
  readonly kind: "statement" | "portal";
  readonly name: string;
}

/** Describe and Close: what they name. */
export function readNamedObject(
  chunk: Uint8Array,
  start: number = 0,
  end: number = chunk.length,
): NamedObject | undefined {
  const kind = chunk[start + HEADER_BYTES];
  const nameStart = start + HEADER_BYTES + 1;
  if (nameStart >= end || endOfString(chunk, nameStart, end) !== end - 1) return undefined;
  if (kind !== STATEMENT && kind !== PORTAL) return undefined;
  return {
    kind: kind === STATEMENT ? "statement" : "portal",
    name: latin1(chunk, nameStart, end - 1),
  };
}

const STATEMENT = 0x53;
const PORTAL = 0x50;

/** A Parse under another name: `tail` is everything from the query text on. */
export function encodeParse(serverName: Uint8Array, tail: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + serverName.length + 1 + tail.length);
  frame[0] = Frontend.PARSE;
  writeInt32(frame, 1, frame.length - 1);
  frame.set(serverName, HEADER_BYTES);
  frame.set(tail, HEADER_BYTES + serverName.length + 1);
  return frame;
}

/**
 * The first part of the Bind that begins at `start`, under another statement name: header, portal, statement. What follows
 * `message.tailOffset` in the original is to be sent behind it, which keeps the parameters uncopied.
 */
export function encodeBindHead(
  chunk: Uint8Array,
  start: number,
  message: BindMessage,
  serverName: Uint8Array,
): Uint8Array {
  const portalStart = start + HEADER_BYTES;
  const nameAt = HEADER_BYTES + message.statementOffset - portalStart;
  const head = new Uint8Array(nameAt + serverName.length + 1);
  const oldHeadBytes = message.tailOffset - start;
  head[0] = Frontend.BIND;
  writeInt32(head, 1, readInt32(chunk, start + 1) - oldHeadBytes + head.length);
  copyRange(head, HEADER_BYTES, chunk, portalStart, message.statementOffset);
  copyRange(head, nameAt, serverName, 0, serverName.length);
  return head;
}

export function encodeDescribeStatement(serverName: Uint8Array): Uint8Array {
  return encodeNamedObject(Frontend.DESCRIBE, serverName);
}

export function encodeCloseStatement(serverName: Uint8Array): Uint8Array {
  return encodeNamedObject(Frontend.CLOSE, serverName);
}

function encodeNamedObject(type: number, name: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + 1 + name.length + 1);
  frame[0] = type;
  writeInt32(frame, 1, frame.length - 1);
  frame[HEADER_BYTES] = STATEMENT;
  frame.set(name, HEADER_BYTES + 1);
  return frame;
}

/** `text` must hold no NUL. */
export function encodeQuery(text: string): Uint8Array {
  const body = encoder.encode(text);
  const frame = new Uint8Array(HEADER_BYTES + body.length + 1);
  frame[0] = Frontend.QUERY;
  writeInt32(frame, 1, frame.length - 1);
  frame.set(body, HEADER_BYTES);
  return frame;
}

export function encodeCopyFail(reason: string): Uint8Array {
  const frame = encodeQuery(reason);
  frame[0] = Frontend.COPY_FAIL;
  return frame;
}

export const FLUSH_FRAME = new Uint8Array([Frontend.FLUSH, 0, 0, 0, 4]);
export const SYNC_FRAME = new Uint8Array([Frontend.SYNC, 0, 0, 0, 4]);
export const TERMINATE_FRAME = new Uint8Array([Frontend.TERMINATE, 0, 0, 0, 4]);

/**
 * A Bind that always fails with 26000, since nothing of ours has this name and clients' own names are never used on a server: unnamed
 * portal, that statement, no formats, no values, no result formats.
 */
export const FAILING_BIND_FRAME = (() => {
  const name = encoder.encode("_walgate_none");
  const frame = new Uint8Array(HEADER_BYTES + 1 + name.length + 7);
  frame[0] = Frontend.BIND;
  writeInt32(frame, 1, frame.length - 1);
  frame.set(name, HEADER_BYTES + 1);
  return frame;
})();
