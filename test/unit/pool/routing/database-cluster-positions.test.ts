// Positions of the primary from tickets, probes and the oracle, over scripted servers.
import { expect, test } from "bun:test";
import { settle } from "#test/unit/pool/consistency/scripted-server.ts";
import { at, routeLater, START_LSN, startBench } from "./cluster-bench.ts";

const AHEAD = START_LSN + 0x100n;

test("a ticket is answered by a sample that was asked for after it", async () => {
  const bench = await startBench();
  const { cluster } = bench;
  bench.primary.behaviour = "held";
  await bench.pass(250);
  bench.primary.lsn = AHEAD;
  const ticket = cluster.ticket();
  bench.primary.release();
  bench.primary.behaviour = "answers";
  await settle();
  const early = cluster.sampledAfter(ticket);

  await bench.pass(250);

  expect([early, cluster.sampledAfter(ticket)]).toEqual([undefined, at(AHEAD)]);
});

test("a wanted sample comes within 100 ms", async () => {
  const bench = await startBench();
  const ticket = bench.cluster.ticket();
  bench.cluster.wantSample();

  await bench.pass(99);
  const before = bench.cluster.sampledAfter(ticket);
  await bench.pass(1);

  expect([before, bench.cluster.sampledAfter(ticket)]).toEqual([undefined, at(START_LSN)]);
});

test("after a change of the primary a ticket waits for a sample of the new one", async () => {
  const bench = await startBench();
  const ticket = bench.cluster.ticket();
  await bench.pass(250);
  const before = bench.cluster.sampledAfter(ticket);
  bench.primary.behaviour = "refuses";
  bench.primary.breakConnections();
  const between = bench.cluster.sampledAfter(ticket);
  bench.one.isInRecovery = false;
  bench.one.timeline = 2;

  await bench.pass(260);

  expect([before, between]).toEqual([at(START_LSN), undefined]);
  expect(bench.cluster.sampledAfter(ticket)).toEqual(at(START_LSN, 2));
});

test("a probe's answer becomes a normalised position and is known to exist", async () => {
  const bench = await startBench();
  const { cluster } = bench;
  const mark = cluster.probeMark(bench.primary.server);

  const position = cluster.toPosition("0/10002018", mark);
  const later = routeLater(bench, { positions: [at(0x1000_2000n)] });
  await bench.pass(1);

  expect(position).toEqual(at(0x1000_2000n));
  // Without what the probe told it would have been taken for a future one.
  expect([later.result, bench.primary.connectionCount]).toEqual([undefined, 1]);
});

test("a probe's answer below the sample that was known when it was written is a lie", async () => {
  const bench = await startBench();
  const { cluster } = bench;
  const mark = cluster.probeMark(bench.primary.server);
  bench.primary.lsn = AHEAD;
  await bench.pass(250);

  const answers = ["0/10001000", "0/10000FFF", "0/10001", "x"].map((text) =>
    cluster.toPosition(text, mark),
  );

  // The first is below the newest sample, which may have overtaken the answer.
  expect(answers).toEqual([at(START_LSN), "probe_backwards", "probe_backwards", "malformed"]);
  expect(bench.events).toEqual(["probe_backwards", "probe_backwards"]);
});

test("a probe's answer from another server or an older epoch has no place", async () => {
  const bench = await startBench();
  const { cluster } = bench;
  const foreign = cluster.probeMark(bench.one.server);
  const mark = cluster.probeMark(bench.primary.server);
  bench.primary.startedAt = "later";
  await bench.pass(260);

  expect([foreign, cluster.toPosition("0/10001000", mark)]).toEqual([undefined, "unknown"]);
  expect(cluster.toPosition("0/10001000", undefined)).toBe("unknown");
});

test("the oracle asks the primary anew", async () => {
  const bench = await startBench();
  bench.primary.lsn = AHEAD;

  expect(await bench.cluster.oracle(1_000)).toEqual(at(AHEAD));
});
