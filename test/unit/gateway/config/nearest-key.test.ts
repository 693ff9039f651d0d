import { expect, test } from "bun:test";
import { editDistance, nearestKey } from "#gateway/config/nearest-key.ts";

test("the distance counts insertions, deletions and replacements", () => {
  const pairs = [
    ["", ""],
    ["", "abc"],
    ["abc", ""],
    ["abc", "abc"],
    ["kitten", "sitting"],
    ["flaw", "lawn"],
  ] as const;

  expect(pairs.map(([left, right]) => editDistance(left, right))).toEqual([0, 3, 3, 0, 3, 2]);
});

test("the nearest key wins, whatever the case of the unknown one", () => {
  const keys = ["pool_mode", "default_pool_size", "query_timeout"];

  expect(nearestKey("POOL_MOD", keys)).toBe("pool_mode");
  expect(nearestKey("query_time", keys)).toBe("query_timeout");
});

test("of equally near keys the first wins, and of none there is none", () => {
  expect(nearestKey("ac", ["ab", "ad"])).toBe("ab");
  expect(nearestKey("a", [])).toBeUndefined();
});

test("a key of a million characters is compared by its beginning", () => {
  expect(nearestKey("x".repeat(1_000_000), ["y", "x"])).toBe("x");
});
