// The audience must tell every pair of names apart.
import { expect, test } from "bun:test";
import { tokenAudience } from "#pool/consistency/token-audience.ts";

test("pairs that differ only in where one name ends have different audiences", () => {
  const pairs: [string, string][] = [
    ["a", "b"],
    ["ab", ""],
    ["", "ab"],
    ["a\0b", "c"],
    ["a", "b\0c"],
    ['a","b', "c"],
    ["a", 'b","c'],
    ["a", "\ud800"],
    ["a", "\ud801"],
    ["a", "\ufffd"],
  ];

  const bytes = pairs.map((pair) => Buffer.from(tokenAudience(...pair)).toString("hex"));

  expect(new Set(bytes).size).toBe(pairs.length);
});

test("an audience never holds a NUL", () => {
  expect(tokenAudience("a\0", "\0b").includes("\0")).toBe(false);
});
