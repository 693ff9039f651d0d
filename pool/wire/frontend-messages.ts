// Reads the few fields of frontend messages that routing depends on, and writes the ones that renaming changes. Pure functions over whole frames.
import { Frontend, HEADER_BYTES, readInt32, writeInt32 } from "./message-types.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Index of the NUL that ends the string at `from`, or -1 when the frame ends first. */
function endOfString(frame: Uint8Array, from: number): number {
  return frame.indexOf(0, from);
}

/** Any byte to one character, so that two names are equal exactly when their bytes are. */
export function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1", from, to);
}

function utf8(bytes: Uint8Array, from: number, to: number): string {
  return decoder.decode(bytes.subarray(from, to));
}

/** Query: the text, or undefined when the frame is malformed. */
export function readQuery(frame: Uint8Array): string | undefined {
  const end = endOfString(frame, HEADER_BYTES);
  return end === frame.length - 1 ? utf8(frame, HEADER_BYTES, end) : undefined;
}

export interface ParseMessage {
  /** Latin-1 of the statement's name; empty is the unnamed statement. */
  readonly name: string;
  readonly text: string;
  /** Where the query text begins: from here on the message is the same under any name. */
  readonly tailOffset: number;
}

export function readParse(frame: Uint8Array): ParseMessage | undefined {
  const nameEnd = endOfString(frame, HEADER_BYTES);
  if (nameEnd < 0) return undefined;
  const textEnd = endOfString(frame, nameEnd + 1);
  if (textEnd < 0 || textEnd + 3 > frame.length) return undefined;
  const typeCount = ((frame[textEnd + 1] ?? 0) << 8) | (frame[textEnd + 2] ?? 0);
  if (textEnd + 3 + typeCount * 4 !== frame.length) return undefined;
  return {
    name: latin1(frame, HEADER_BYTES, nameEnd),
    text: utf8(frame, nameEnd + 1, textEnd),
    tailOffset: nameEnd + 1,
  };
}

export interface BindMessage {
  readonly statement: string;
  /** Where the statement's name begins, and where what follows its NUL begins. */
  readonly statementOffset: number;
  readonly tailOffset: number;
}

/** Also reads a prefix of a Bind, as long as both names are in it. */
export function readBind(frame: Uint8Array): BindMessage | undefined {
  const portalEnd = endOfString(frame, HEADER_BYTES);
  if (portalEnd < 0) return undefined;
  const statementEnd = endOfString(frame, portalEnd + 1);
  if (statementEnd < 0) return undefined;
  return {
    statement: latin1(frame, portalEnd + 1, statementEnd),
    statementOffset: portalEnd + 1,
    tailOffset: statementEnd + 1,
  };
}

export interface NamedObject {
  readonly kind: "statement" | "portal";
  readonly name: string;
}

/** Describe and Close: what they name. */
export function readNamedObject(frame: Uint8Array): NamedObject | undefined {
  const kind = frame[HEADER_BYTES];
  const end = endOfString(frame, HEADER_BYTES + 1);
  if (end !== frame.length - 1) return undefined;
  if (kind !== STATEMENT && kind !== PORTAL) return undefined;
  return {
    kind: kind === STATEMENT ? "statement" : "portal",
    name: latin1(frame, HEADER_BYTES + 1, end),
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
 * The first part of a Bind under another statement name: header, portal, statement. What follows `message.tailOffset` in the
 * original is to be sent behind it, which keeps the parameters uncopied.
 */
export function encodeBindHead(
  frame: Uint8Array,
  message: BindMessage,
  serverName: Uint8Array,
): Uint8Array {
  const portal = frame.subarray(HEADER_BYTES, message.statementOffset);
  const head = new Uint8Array(HEADER_BYTES + portal.length + serverName.length + 1);
  const oldHeadBytes = message.tailOffset;
  head[0] = Frontend.BIND;
  writeInt32(head, 1, readInt32(frame, 1) - oldHeadBytes + head.length);
  head.set(portal, HEADER_BYTES);
  head.set(serverName, HEADER_BYTES + portal.length);
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
