// The oracle: one question at a time, never an answer that may precede a caller's commit.
import { expect, test } from "bun:test";
import { ORACLE_CALLERS_MAX, PositionOracle } from "#pool/consistency/position-oracle.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { elapse, opener, ScriptedServer, settle, SYSTEM } from "./scripted-server.ts";

interface Bench {
  readonly clock: FakeClock;
  readonly script: ScriptedServer;
  readonly oracle: PositionOracle;
  readonly results: unknown[];
  readonly ask: (deadlineMs?: number) => void;
}

function bench(): Bench {
  const clock = new FakeClock();
  const script = new ScriptedServer(clock, "one");
  script.isInRecovery = false;
  const results: unknown[] = [];
  const oracle = new PositionOracle({
    openControl: opener([script]),
    clock,
    whenPrimary: () => Promise.resolve(script.server),
  });
  const ask = (deadlineMs = 1_000): void => {
    oracle.read(clock.now() + deadlineMs).then(
      (position) => results.push(position.lsn),
      (error: unknown) => results.push(error),
    );
  };
  return { clock, script, oracle, results, ask };
}

test("the answer is the primary's position, normalised, with its history", async () => {
  const { script, oracle, clock } = bench();
  script.lsn = 0x1000_0018n;

  expect(await oracle.read(clock.now() + 1_000)).toEqual({
    systemIdentifier: SYSTEM,
    timeline: 1,
    lsn: 0x1000_0000n,
  });
});

test("calls that come before the question is sent share it", async () => {
  const { script, ask, results } = bench();
  ask();
  ask();
  ask();
  await settle();

  expect([results, script.polls.length]).toEqual([[0x1000_0000n, 0x1000_0000n, 0x1000_0000n], 1]);
});

test("a call that comes while a question is in flight shares the next one", async () => {
  const { script, ask, results } = bench();
  script.behaviour = "held";
  ask();
  await settle();
  script.lsn = 0x1000_1000n;
  ask();
  ask();
  await settle();
  const inFlight = script.polls.length;

  script.release();
  await settle();
  script.release();
  await settle();

  expect(inFlight).toBe(1);
  expect(results).toEqual([0x1000_0000n, 0x1000_1000n, 0x1000_1000n]);
  expect(script.polls.map((poll) => poll.withIdentity)).toEqual([true, false]);
});

test("a caller gives up at its deadline while the others get their answer", async () => {
  const { clock, script, ask, results } = bench();
  script.behaviour = "held";
  ask(100);
  ask(1_000);
  await settle();

  await elapse(clock, 99);
  const before = [...results];
  await elapse(clock, 1);
  script.release();
  await settle();

  expect(before).toEqual([]);
  expect(results).toMatchObject([{ sqlState: "57014" }, 0x1000_0000n]);
  expect(script.connectionCount).toBe(1);
});

test("a primary that hangs is left after 5 s and asked on a new connection", async () => {
  const { clock, script, ask, results } = bench();
  script.behaviour = "hangs";
  ask(10_000);
  await elapse(clock, 5_000);
  script.behaviour = "answers";
  ask();
  await settle();

  expect(results).toMatchObject([{ code: "ERR_CONNECTION_LOST" }, 0x1000_0000n]);
});

test("a connection that broke while nobody used it costs nobody an error", async () => {
  const { script, ask, results } = bench();
  ask();
  await settle();
  script.breakConnections();
  ask();
  await settle();

  expect([results, script.opened.length]).toEqual([[0x1000_0000n, 0x1000_0000n], 2]);
});

test("a question that fails on a used connection is asked once more on a new one", async () => {
  const { script, ask, results } = bench();
  ask();
  await settle();
  script.behaviour = "lies";
  script.opening = () => (script.behaviour = "answers");
  ask();
  await settle();

  expect([results, script.opened.length]).toEqual([[0x1000_0000n, 0x1000_0000n], 2]);
});

test("a question that fails on the new connection too is an error", async () => {
  const { script, ask, results } = bench();
  ask();
  await settle();
  script.behaviour = "lies";
  ask();
  await settle();

  expect(results).toMatchObject([0x1000_0000n, { code: "ERR_SERVER_PROTOCOL" }]);
  expect(script.opened).toHaveLength(2);
});

test("a server that turned into a replica gives no position", async () => {
  const { script, ask, results } = bench();
  ask();
  await settle();
  script.isInRecovery = true;
  ask();
  await settle();

  expect(results).toMatchObject([0x1000_0000n, { code: "ERR_NO_SERVER", sqlState: "57P03" }]);
});

test("a primary that cannot be reached fails those who asked, and the next may try again", async () => {
  const { script, ask, results } = bench();
  script.behaviour = "refuses";
  ask();
  ask();
  await settle();
  script.behaviour = "answers";
  ask();
  await settle();

  const refused = { code: "ERR_CONNECT_FAILED" };
  expect(results).toMatchObject([refused, refused, 0x1000_0000n]);
});

test("callers are counted until they have an answer", async () => {
  const { clock, script, oracle, ask, results } = bench();
  script.behaviour = "held";
  for (let index = 0; index < ORACLE_CALLERS_MAX; index++) ask();
  const over = oracle.read(clock.now() + 1_000).catch((error: unknown) => error);
  expect(await over).toMatchObject({ sqlState: "53300" });
  await settle();

  script.release();
  await settle();
  script.behaviour = "answers";
  ask();
  await settle();

  expect([results.length, results.at(-1)]).toEqual([ORACLE_CALLERS_MAX + 1, 0x1000_0000n]);
});

test("stopping rejects those who wait and closes the connection", async () => {
  const { clock, script, oracle, ask, results } = bench();
  script.behaviour = "held";
  ask();
  await settle();
  ask();

  oracle.stop();
  ask();
  await settle();

  const stopped = { code: "ERR_SHUTTING_DOWN", sqlState: "57P01" };
  expect(results).toMatchObject([stopped, stopped, stopped]);
  expect([script.connectionCount, clock.timerCount]).toEqual([0, 0]);
});
