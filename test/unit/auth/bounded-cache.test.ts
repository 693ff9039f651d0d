// Unit tests of auth/bounded-cache.ts.
import { describe, expect, test } from "bun:test";
import { BoundedCache } from "#auth/bounded-cache.ts";

describe("BoundedCache", () => {
  test("the least recently used entry goes when one more than the maximum comes in", () => {
    const cache = new BoundedCache<number>(2);
    cache.set("a", 1);
    cache.set("b", 2);
    cache.get("a");

    cache.set("c", 3);

    expect([cache.get("a"), cache.get("b"), cache.get("c"), cache.count]).toEqual([
      1,
      undefined,
      3,
      2,
    ]);
  });

  test("an entry that is set again does not push another one out", () => {
    const cache = new BoundedCache<number>(2);
    cache.set("a", 1);
    cache.set("b", 2);

    cache.set("a", 3);

    expect([cache.get("a"), cache.get("b")]).toEqual([3, 2]);
  });

  test("deleted and cleared entries are gone", () => {
    const cache = new BoundedCache<number>(3);
    cache.set("a", 1);
    cache.set("b", 2);

    cache.delete("a");
    const afterDelete = [cache.get("a"), cache.get("b")];
    cache.clear();

    expect(afterDelete).toEqual([undefined, 2]);
    expect(cache.count).toBe(0);
  });
});
