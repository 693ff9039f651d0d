import { describe, expect, test } from "bun:test";
import { CHUNK_BYTES_MAX, JsonBytes } from "#gateway/session/json-bytes.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function written(write: (out: JsonBytes) => void): string {
  const out = new JsonBytes();
  write(out);
  return decoder.decode(out.whole());
}

function quoted(bytes: Uint8Array): string {
  return written((out) => out.quoted(bytes, 0, bytes.length));
}

describe("a quoted text", () => {
  test("is what JSON.stringify writes, for every character below 256 and some above", () => {
    const texts = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));
    texts.push("", "é€😀\u2028\ufeffx", '\\"', "plain", `${"x".repeat(100)}\n`);

    for (const text of texts) expect(quoted(encoder.encode(text))).toBe(JSON.stringify(text));
  });

  test("has U+FFFD for bytes that are no UTF-8, and so has JSON", () => {
    const bytes = Uint8Array.of(0x61, 0xe9, 0x22, 0xff);

    expect(quoted(bytes)).toBe(JSON.stringify('a\ufffd"\ufffd'));
    expect(written((out) => out.json(Uint8Array.of(0x22, 0xe9, 0x22), 0, 3))).toBe('"\ufffd"');
  });

  test("is only the part that was named", () => {
    const bytes = encoder.encode("abcdef");

    expect(written((out) => out.quoted(bytes, 2, 4))).toBe('"cd"');
  });
});

test("what is longer than a chunk goes on in the next ones, byte by byte or at once", () => {
  const text = "0123456789é".repeat(20_000);
  const bytes = encoder.encode(text);
  let kept = 0;
  const out = new JsonBytes((size) => {
    kept += size;
  });

  out.raw(bytes);
  for (const byte of bytes) out.byte(byte);
  const chunks = out.chunks();

  expect(decoder.decode(out.whole())).toBe(text + text);
  expect(decoder.decode(Buffer.concat(chunks))).toBe(text + text);
  expect(Math.max(...chunks.map(({ length }) => length))).toBe(CHUNK_BYTES_MAX);
  expect(out.size).toBe(2 * bytes.length);
  // No more than the last chunk is partly empty.
  expect(kept - out.size).toBeLessThan(CHUNK_BYTES_MAX);
});

test("a million tiny pieces keep no more than twice their bytes", () => {
  for (const count of [1, 500, 513, 3_000, 1_000_000]) {
    let kept = 0;
    const out = new JsonBytes((size) => {
      kept += size;
    });
    for (let index = 0; index < count; index++) out.byte(0x31);

    expect(kept).toBeLessThanOrEqual(Math.max(512, 2 * count));
    expect(out.size).toBe(count);
  }
});

test("without anything written there is nothing", () => {
  expect(new JsonBytes().whole()).toEqual(new Uint8Array(0));
  expect(new JsonBytes().size).toBe(0);
});
