import { expect, test } from "bun:test";
import { RELEASE_BYTES_MIN, releaseBytes } from "#pool/transport/release-bytes.ts";

test("a large chunk is empty afterwards, and so are views of it", () => {
  const bytes = new Uint8Array(RELEASE_BYTES_MIN).fill(7);
  const view = bytes.subarray(0, 3);

  releaseBytes(bytes);
  releaseBytes(bytes);

  expect([bytes.length, view.length, bytes.buffer.byteLength]).toEqual([0, 0, 0]);
});

test("a small chunk stays as it is", () => {
  const bytes = new Uint8Array(RELEASE_BYTES_MIN - 1);

  releaseBytes(bytes);

  expect(bytes.length).toBe(RELEASE_BYTES_MIN - 1);
});

test("memory of which a chunk is only a part stays as it is: others may have the rest", () => {
  const whole = new Uint8Array(3 * RELEASE_BYTES_MIN);
  const shared = new Uint8Array(new SharedArrayBuffer(RELEASE_BYTES_MIN));

  releaseBytes(whole.subarray(0, RELEASE_BYTES_MIN));
  releaseBytes(whole.subarray(RELEASE_BYTES_MIN));
  releaseBytes(shared);

  expect([whole.length, shared.length]).toEqual([3 * RELEASE_BYTES_MIN, RELEASE_BYTES_MIN]);
});
