// How load spreads over servers that may all serve.
import { expect, test } from "bun:test";
import { ServerSelection } from "#pool/routing/server-selection.ts";
import type { Server } from "#pool/routing/server.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { ScriptedServer } from "#test/unit/pool/consistency/scripted-server.ts";

const clock = new FakeClock();

function server(name: string, weight = 1, leased = 0): Server {
  return Object.assign(new ScriptedServer(clock, name, weight).server, { leased });
}

function names(servers: readonly Server[]): string {
  return servers.map((one) => one.name).join("");
}

/** Gives the numbers in turn. */
function scripted(...numbers: number[]): () => number {
  return () => numbers.shift() ?? 0;
}

test("none and one are given back as they are", () => {
  const selection = new ServerSelection(() => 0);
  const one = [server("a")];

  expect([selection.order([]), selection.order(one)]).toEqual([[], one]);
});

test("two equal servers take turns, whatever their load is", () => {
  const selection = new ServerSelection(() => 0);
  const pair = [server("a", 1, 50), server("b", 1, 0)];

  const orders = Array.from({ length: 4 }, () => names(selection.order(pair)));

  expect(orders).toEqual(["ab", "ba", "ab", "ba"]);
});

test("two servers of weights 3 and 1 serve three and one of four, evenly spread", () => {
  const selection = new ServerSelection(() => 0);
  const pair = [server("a", 3), server("b", 1)];

  const first = Array.from({ length: 8 }, () => names(selection.order(pair))[0]).join("");

  expect(first).toBe("aabaaaba");
});

test("of two out of three the less loaded leads, and the list holds all", () => {
  const servers = [server("a", 1, 5), server("b", 1, 4), server("c", 1, 0)];

  // The numbers pick a and b, then b and c, then c and a.
  const orders = [scripted(0, 0), scripted(0.34, 0), scripted(0.67, 0)].map((random) =>
    names(new ServerSelection(random).order(servers)),
  );

  expect(orders).toEqual(["bac", "cba", "cab"]);
});

test("load counts in proportion to weight", () => {
  const servers = [server("a", 10, 5), server("b", 1, 1), server("c", 1, 9)];

  expect(names(new ServerSelection(scripted(0, 0)).order(servers))).toBe("abc");
});

test("the two that are compared always differ", () => {
  const servers = [server("a"), server("b"), server("c"), server("d")];
  const almostOne = 1 - Number.EPSILON;

  for (const at of [0, 0.25, 0.5, 0.75, almostOne]) {
    for (const step of [0, 0.34, 0.67, almostOne]) {
      const order = new ServerSelection(scripted(at, step)).order(servers);
      expect(new Set(order)).toEqual(new Set(servers));
      expect(order).toHaveLength(4);
    }
  }
});
