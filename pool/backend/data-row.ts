// Reads the cells of a DataRow in text format. Pure.
import { HEADER_BYTES, readInt32 } from "../wire/message-types.ts";
import { utf8 } from "../wire/text.ts";

const NULL_SIZE = -1;

/** Undefined when counts and sizes do not add up to the frame. */
export function readTextRow(frame: Uint8Array): (string | null)[] | undefined {
  if (frame.length < HEADER_BYTES + 2) return undefined;
  const count = ((frame[HEADER_BYTES] ?? 0) << 8) | (frame[HEADER_BYTES + 1] ?? 0);
  const cells: (string | null)[] = [];
  let offset = HEADER_BYTES + 2;
  for (let index = 0; index < count; index += 1) {
    if (offset + 4 > frame.length) return undefined;
    const size = readInt32(frame, offset);
    offset += 4;
    if (size === NULL_SIZE) {
      cells.push(null);
      continue;
    }
    if (size < 0 || offset + size > frame.length) return undefined;
    cells.push(utf8(frame, offset, offset + size));
    offset += size;
  }
  return offset === frame.length ? cells : undefined;
}
