// Pieces for one server: joined where they lie side by side, copied together where they are small, sent apart where they are not.
import { expect, test } from "bun:test";
import { OutputBatch } from "#pool/backend/output-batch.ts";

function flushed(batch: OutputBatch): Uint8Array[] {
  const sent: Uint8Array[] = [];
  batch.flush({ send: (bytes) => sent.push(bytes) });
  return sent;
}

test("neighbours in one chunk leave as one view of it, uncopied", () => {
  const batch = new OutputBatch();
  const chunk = new Uint8Array([1, 2, 3, 4, 5]);

  batch.add(chunk, 1, 2);
  batch.add(chunk, 2, 4);
  const sent = flushed(batch);

  expect(sent).toEqual([new Uint8Array([2, 3, 4])]);
  expect(sent[0]?.buffer).toBe(chunk.buffer);
});

test("small pieces from elsewhere leave in one write, in order", () => {
  const batch = new OutputBatch();

  batch.add(new Uint8Array([1]));
  batch.add(new Uint8Array([2, 3]));

  expect(flushed(batch)).toEqual([new Uint8Array([1, 2, 3])]);
});

test("up to the limit pieces are copied together, above it they leave as they are", () => {
  const batch = new OutputBatch();
  const large = new Uint8Array(65_535);

  batch.add(new Uint8Array([1]));
  batch.add(large);
  const together = flushed(batch);
  batch.add(new Uint8Array([1, 2]));
  batch.add(large);
  const apart = flushed(batch);

  expect(together.map(({ length }) => length)).toEqual([65_536]);
  expect(apart.map(({ length }) => length)).toEqual([2, 65_535]);
});

test("what was flushed is not sent again, and nothing is not sent at all", () => {
  const batch = new OutputBatch();
  batch.add(new Uint8Array([1]));
  flushed(batch);

  expect(flushed(batch)).toEqual([]);
});
