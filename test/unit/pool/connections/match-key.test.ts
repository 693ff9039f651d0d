// Which requests share a key and which share a family.
import { describe, expect, test } from "bun:test";
import { familyKeyOf, matchKeyOf } from "#pool/connections/match-key.ts";
import { fakeProfile } from "./fake-pool.ts";

function keysOf(
  name: string,
  generation: number,
  startupOptions: string,
  principal: string,
): { family: string; key: string } {
  const profile = fakeProfile({ name, generation });
  const family = familyKeyOf({ profile, principal, startupOptions });
  return { family, key: matchKeyOf(family, principal) };
}

describe("match key", () => {
  test("equal parts give equal keys, also from two profile objects", () => {
    expect(keysOf("api", 1, "a=1", "alice")).toEqual(keysOf("api", 1, "a=1", "alice"));
  });

  test("each part changes the key, and only the principal leaves the family", () => {
    const base = keysOf("api", 1, "a=1", "alice");
    const others = [
      keysOf("web", 1, "a=1", "alice"),
      keysOf("api", 2, "a=1", "alice"),
      keysOf("api", 1, "a=2", "alice"),
      keysOf("api", 1, "a=1", "bob"),
    ];

    expect(others.map(({ key }) => key === base.key)).toEqual([false, false, false, false]);
    expect(others.map(({ family }) => family === base.family)).toEqual([false, false, false, true]);
  });

  test("text that looks like a part of the key stays inside its own part", () => {
    const tricky = [
      keysOf("api", 1, "", ""),
      keysOf("api", 1, "", ',""'),
      keysOf("api", 1, '","', ""),
      keysOf("api", 1, ",", ""),
      keysOf("api", 1, "", ","),
      keysOf('api",1]', 1, "", ""),
      keysOf("api", 1, 'a"', "b"),
      keysOf("api", 1, "a", '",b'),
      keysOf("api", 1, 'a",b', ""),
    ].map(({ key }) => key);

    expect(new Set(tricky).size).toBe(tricky.length);
  });
});
