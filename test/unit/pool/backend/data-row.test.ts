import { expect, test } from "bun:test";
import fc from "fast-check";
import { readTextRow } from "#pool/backend/data-row.ts";
import { frame, int32, text } from "./scripted-server.ts";

function encodeRow(cells: readonly (string | null)[]): Uint8Array {
  const parts = cells.flatMap((cell) =>
    cell === null ? [int32(-1)] : [int32(text(cell).length), text(cell)],
  );
  return frame("D", Uint8Array.of(cells.length >> 8, cells.length & 0xff), ...parts);
}

test("any row of text and NULL reads back as it was written", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.string({ unit: "grapheme" })), { maxLength: 300 }), (cells) =>
      expect(readTextRow(encodeRow(cells))).toEqual(cells),
    ),
    { numRuns: 50 },
  );
});

test("a row that is cut anywhere, or has a byte too many, is malformed", () => {
  const row = encodeRow(["abc", null, ""]);
  for (let size = 5; size < row.length; size += 1) {
    expect(readTextRow(row.subarray(0, size))).toBeUndefined();
  }
  expect(readTextRow(Uint8Array.of(...row, 0))).toBeUndefined();
});

test("a cell with a size below NULL's or beyond the row is malformed", () => {
  expect(readTextRow(frame("D", Uint8Array.of(0, 1), int32(-2)))).toBeUndefined();
  expect(readTextRow(frame("D", Uint8Array.of(0, 1), int32(0x7fff_ffff)))).toBeUndefined();
});
