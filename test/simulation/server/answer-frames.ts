// Answers that simulated servers give over and over, made once; rows are written without a view in between.
import { writeInt32 } from "#pool/wire/message-types.ts";
import { server as reply } from "#test/support/wire-frames.ts";

export const READY = { I: reply.ready("I"), T: reply.ready("T"), E: reply.ready("E") } as const;
export const PARSE_COMPLETE: Uint8Array = reply.parseComplete();
export const BIND_COMPLETE: Uint8Array = reply.bindComplete();

const completions = new Map<string, Uint8Array>();
const descriptions = new Map<readonly string[], Uint8Array>();

export function commandComplete(tag: string): Uint8Array {
  let frame = completions.get(tag);
  if (frame === undefined) completions.set(tag, (frame = reply.commandComplete(tag)));
  return frame;
}

/** `columns` are told apart by identity. */
export function rowDescription(columns: readonly string[]): Uint8Array {
  let frame = descriptions.get(columns);
  if (frame === undefined) descriptions.set(columns, (frame = reply.rowDescription(...columns)));
  return frame;
}

const HEADER_BYTES = 7;

/** Latin-1 values. */
export function dataRow(values: readonly (string | null)[]): Uint8Array {
  let size = HEADER_BYTES;
  for (const value of values) size += 4 + (value?.length ?? 0);
  const frame = new Uint8Array(size);
  frame[0] = "D".charCodeAt(0);
  writeInt32(frame, 1, size - 1);
  frame[6] = values.length;
  let at = HEADER_BYTES;
  for (const value of values) {
    writeInt32(frame, at, value === null ? -1 : value.length);
    at += 4;
    if (value === null) continue;
    Buffer.prototype.write.call(frame, value, at, "latin1");
    at += value.length;
  }
  return frame;
}
