// Messages that simulated clients send over and over, made once; Bind is written without a view in between.
import { writeInt32 } from "#pool/wire/message-types.ts";
import { client as message } from "#test/support/wire-frames.ts";
import { sql } from "./server/statements.ts";

export const SYNC: Uint8Array = message.sync();
const DESCRIBE = message.describePortal("");
const EXECUTE = message.execute("");
const parses = new Map<string, Uint8Array>();

/** Parse of the read or the write with parameters, under that name. */
export function parse(kind: "read" | "write", name: string): Uint8Array {
  const key = `${kind} ${name}`;
  let frame = parses.get(key);
  if (frame === undefined) {
    frame = message.parse(name, kind === "read" ? sql.parameterRead : sql.parameterWrite);
    parses.set(key, frame);
  }
  return frame;
}

/** Bind of the unnamed portal, Describe, Execute. */
export function run(statement: string, tag: string, key: number): readonly Uint8Array[] {
  return [bind(statement, [tag, String(key)]), DESCRIBE, EXECUTE];
}

/** Type, length, two NULs, no formats, and one result format of none. */
const FIXED_BYTES = 5 + 2 + 2 + 2 + 2;

/** ASCII throughout. */
function bind(statement: string, values: readonly string[]): Uint8Array {
  let size = FIXED_BYTES + statement.length;
  for (const value of values) size += 4 + value.length;
  const frame = new Uint8Array(size);
  frame[0] = "B".charCodeAt(0);
  writeInt32(frame, 1, size - 1);
  // Behind the portal's NUL.
  let at = 6 + put(frame, 6, statement) + 1 + 2;
  frame[at + 1] = values.length;
  at += 2;
  for (const value of values) {
    writeInt32(frame, at, value.length);
    at += 4 + put(frame, at + 4, value);
  }
  return frame;
}

function put(frame: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) frame[at + i] = text.charCodeAt(i);
  return text.length;
}
