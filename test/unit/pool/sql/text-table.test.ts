// Bounds and exactness of the table; what is kept in it is the classifier's.
import { expect, test } from "bun:test";
import type { ByteHash } from "#pool/wire/byte-hash.ts";
import { TextTable } from "#pool/sql/text-table.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);

function table(entriesMax: number, bytesMax: number, hash?: ByteHash) {
  const texts = new TextTable<{ readonly text: string }>({ entriesMax, bytesMax }, hash);
  return {
    keep: (text: string) => texts.keep(bytes(text), 0, bytes(text).length, { text }),
    find: (text: string) => texts.find(bytes(text), 0, bytes(text).length)?.text,
    texts,
  };
}

test("a text is found by its bytes wherever they lie, and only by all of them", () => {
  const { texts, keep, find } = table(10, 1000);
  keep("select");

  expect(texts.find(bytes("a select b"), 2, 8)?.text).toBe("select");
  expect([find("selecT"), find("selec"), find("select ")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("of two texts with one hash the latest is kept, and neither is taken for the other", () => {
  const { keep, find } = table(10, 1000, () => 7);
  const [one, other] = ["one", "two"];
  keep(one);
  expect(find(other)).toBeUndefined();
  keep(other);

  expect([find(one), find(other)]).toEqual([undefined, other]);
});

test("the longest unused texts leave past the greatest number, and past the greatest size", () => {
  const few = table(4, 1000);
  for (const text of ["a", "b", "c", "d"]) few.keep(text);
  expect(few.find("a")).toBe("a");
  for (const text of ["e", "f"]) few.keep(text);
  expect([few.find("a"), few.find("b"), few.find("f")]).toEqual(["a", undefined, "f"]);

  const short = table(1000, 40);
  for (const text of ["a".repeat(15), "b".repeat(15), "c".repeat(15)]) short.keep(text);
  expect([short.find("a".repeat(15)), short.find("c".repeat(15))]).toEqual([
    undefined,
    "c".repeat(15),
  ]);
});
