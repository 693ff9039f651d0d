// Who is let go, when, and how many may wait.
import { expect, test } from "bun:test";
import {
  GATE_WAITERS_MAX,
  GATE_WAITERS_PER_SERVER_MAX,
  ReadGate,
} from "#pool/consistency/read-gate.ts";
import type { Server } from "#pool/routing/server.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { ScriptedServer, settle } from "./scripted-server.ts";

const clock = new FakeClock();
const [A, B, C, D, E] = ["a", "b", "c", "d", "e"].map(
  (name) => new ScriptedServer(clock, name).server,
);
if (!A || !B || !C || !D || !E) throw new Error("five servers");

class Bench {
  readonly clock = new FakeClock();
  readonly positions = new Map<Server, bigint>();
  readonly unfit = new Set<Server>();
  readonly joined: string[] = [];
  fullCount = 0;
  readonly results: string[] = [];
  readonly gate: ReadGate = new ReadGate({
    clock: this.clock,
    progress: (server, lsn) => {
      if (this.unfit.has(server)) return "unfit";
      return (this.positions.get(server) ?? 0n) >= lsn ? "reached" : "behind";
    },
    joined: (server) => this.joined.push(server.name),
    full: () => this.fullCount++,
  });

  wait(label: string, servers: readonly Server[], lsn: bigint, waitMs = 100): void {
    void this.gate
      .wait(servers, lsn, waitMs)
      .then((isReached) => this.results.push(`${label} ${isReached}`));
  }

  async moveTo(server: Server, lsn: bigint): Promise<void> {
    this.positions.set(server, lsn);
    this.gate.serverChanged(server);
    await settle();
  }
}

test("the first server that reaches the position lets the waiter go", async () => {
  const bench = new Bench();
  bench.wait("read", [A, B], 10n);

  await bench.moveTo(A, 9n);
  const before = [...bench.results];
  await bench.moveTo(B, 10n);

  expect([before, bench.results, bench.joined]).toEqual([[], ["read true"], ["a", "b"]]);
  expect([bench.gate.count(A), bench.gate.count(B), bench.clock.timerCount]).toEqual([0, 0, 0]);
});

test("only those whose position is reached go", async () => {
  const bench = new Bench();
  bench.wait("low", [A], 10n);
  bench.wait("high", [A], 11n);

  await bench.moveTo(A, 10n);

  expect([bench.results, bench.gate.count(A)]).toEqual([["low true"], 1]);
});

test("the budget's end lets a waiter go unserved, not a moment earlier", async () => {
  const bench = new Bench();
  bench.wait("read", [A], 10n, 100);

  bench.clock.advance(99);
  await settle();
  const before = [...bench.results];
  bench.clock.advance(1);
  await settle();

  expect([before, bench.results, bench.gate.count(A)]).toEqual([[], ["read false"], 0]);
});

test("a server that becomes unfit is no longer waited for, and the last one ends the wait", async () => {
  const bench = new Bench();
  bench.wait("read", [A, B], 10n);

  bench.unfit.add(A);
  bench.gate.serverChanged(A);
  await settle();
  const before = [...bench.results];
  bench.unfit.add(B);
  bench.gate.serverChanged(B);
  await settle();

  expect([before, bench.results, bench.clock.timerCount]).toEqual([[], ["read false"], 0]);
});

test("one server holds 1,024 waiters, the next is turned away at once", async () => {
  const bench = new Bench();
  for (let index = 1; index < GATE_WAITERS_PER_SERVER_MAX; index++) bench.wait("early", [A], 10n);
  bench.wait("last", [A], 10n);
  bench.wait("over", [A], 10n);
  await settle();

  expect([bench.results, bench.fullCount]).toEqual([["over false"], 1]);
  expect(bench.gate.count(A)).toBe(GATE_WAITERS_PER_SERVER_MAX);
});

test("a read that finds one server full waits for the other", async () => {
  const bench = new Bench();
  for (let index = 0; index < GATE_WAITERS_PER_SERVER_MAX; index++) bench.wait("early", [A], 10n);

  bench.wait("both", [A, B], 10n);

  expect([bench.gate.count(A), bench.gate.count(B), bench.fullCount]).toEqual([1_024, 1, 0]);
});

test("all servers together hold 4,096 waiters", async () => {
  const bench = new Bench();
  for (const server of [A, B, C, D]) {
    for (let index = 0; index < GATE_WAITERS_MAX / 4; index++) bench.wait("early", [server], 10n);
  }

  bench.wait("over", [E], 10n);
  await settle();

  expect([bench.results, bench.fullCount]).toEqual([["over false"], 1]);
});

test("clearing lets everybody go unserved", async () => {
  const bench = new Bench();
  bench.wait("one", [A], 10n);
  bench.wait("two", [B], 10n);

  bench.gate.clear();
  await settle();

  expect([bench.results, bench.clock.timerCount]).toEqual([["one false", "two false"], 0]);
});
