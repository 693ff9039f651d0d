// Routing of reads by freshness, over scripted servers.
import { expect, test } from "bun:test";
import { settle } from "#test/unit/pool/consistency/scripted-server.ts";
import { at, routeLater, routeNow, START_LSN, startBench } from "./cluster-bench.ts";

const AHEAD = START_LSN + 0x100n;

test("a read without positions goes to the replicas by turns", async () => {
  const bench = await startBench();

  expect([routeNow(bench), routeNow(bench)]).toEqual([
    { by: "one,two", reason: "replica" },
    { by: "two,one", reason: "replica" },
  ]);
});

test("access and consistency send to the primary with their reason", async () => {
  const bench = await startBench();

  const routes = [
    routeNow(bench, { access: "primary" }),
    routeNow(bench, { access: "primary", pinnedReason: "pinned" }),
    routeNow(bench, { access: "primary", pinnedReason: "position_unknown" }),
    routeNow(bench, { consistency: "primary" }),
  ];

  expect(routes.map((route) => route.reason)).toEqual([
    "write",
    "pinned",
    "position_unknown",
    "consistency_primary",
  ]);
  expect(new Set(routes.map((route) => route.by))).toEqual(new Set(["primary"]));
});

test("a read with a position goes to the replicas that have replayed it, without waiting", async () => {
  const bench = await startBench(({ one }) => (one.lsn = AHEAD));

  const routes = [START_LSN, START_LSN + 1n, AHEAD].map(
    (lsn) => routeNow(bench, { positions: [at(lsn)] }).by,
  );

  expect(routes).toEqual(["one,two", "one", "one"]);
});

test("a position on a page header counts as the page's start", async () => {
  const bench = await startBench(({ one }) => (one.lsn = 0x1000_2000n));

  expect(routeNow(bench, { positions: [at(0x1000_2018n)] }).by).toBe("one");
});

test("a read with eventual consistency asks for no position", async () => {
  const bench = await startBench();

  const route = routeNow(bench, { consistency: "eventual", positions: [at(AHEAD, 7, 1n)] });

  expect(route.reason).toBe("replica");
});

test("a position of another timeline or system goes to the primary", async () => {
  const bench = await startBench();

  const routes = [[at(1n, 2)], [at(1n, 1, 5n)], [at(START_LSN), at(1n, 2)]].map((positions) =>
    routeNow(bench, { positions }),
  );

  expect(routes).toEqual(routes.map(() => ({ by: "primary", reason: "token_foreign" })));
});

test("a replica of another timeline or system, or a paused one, serves nobody", async () => {
  const bench = await startBench(({ one, two }) => {
    one.timeline = 2;
    two.systemIdentifier = 5n;
  });
  const other = await startBench(({ one, two }) => {
    one.pauseState = "paused";
    two.pauseState = "pause requested";
  });

  expect([routeNow(bench), routeNow(other)]).toEqual([
    { by: "primary", reason: "no_replica" },
    { by: "primary", reason: "no_replica" },
  ]);
});

test("a read waits for the first replica that reaches its position", async () => {
  const bench = await startBench(({ primary }) => (primary.lsn = AHEAD));
  const later = routeLater(bench, { positions: [at(AHEAD)] });
  await bench.pass(5);
  const before = later.result;
  bench.two.lsn = AHEAD;

  await bench.pass(10);

  expect([before, later.result]).toEqual([undefined, { by: "two", reason: "replica" }]);
});

test("a read goes to the primary when its budget is spent, not earlier", async () => {
  const bench = await startBench(({ primary }) => (primary.lsn = AHEAD));
  const later = routeLater(bench, { positions: [at(AHEAD)], waitMs: 100 });

  await bench.pass(99);
  const before = later.result;
  await bench.pass(1);

  expect([before, later.result]).toEqual([undefined, { by: "primary", reason: "wait_timeout" }]);
});

test("without a budget a read does not wait at all", async () => {
  const bench = await startBench(({ primary }) => (primary.lsn = AHEAD));

  expect(routeNow(bench, { positions: [at(AHEAD)], waitMs: 0 })).toEqual({
    by: "primary",
    reason: "wait_timeout",
  });
});

test("a replica whose replay gets paused is not waited for any longer", async () => {
  const bench = await startBench(({ primary }) => (primary.lsn = AHEAD));
  const later = routeLater(bench, { positions: [at(AHEAD)] });
  bench.one.pauseState = "paused";
  await bench.pass(20);
  const before = later.result;

  bench.two.pauseState = "paused";
  await bench.pass(20);

  expect([before, later.result]).toEqual([undefined, { by: "primary", reason: "no_replica" }]);
});

test("a position beyond the primary's last sample is checked once, then waited for", async () => {
  const bench = await startBench();
  bench.primary.lsn = AHEAD;
  const later = routeLater(bench, { positions: [at(AHEAD)] });
  await settle();
  const connections = bench.primary.connectionCount;
  bench.one.lsn = AHEAD;

  await bench.pass(10);

  expect([connections, later.result]).toEqual([2, { by: "one", reason: "replica" }]);
  expect(routeNow(bench, { positions: [at(AHEAD)] }).by).toBe("one");
});

test("a position that the primary has not reached is never waited for", async () => {
  const bench = await startBench();
  const later = routeLater(bench, { positions: [at(AHEAD)] });

  await settle();

  expect(later.result).toEqual({ by: "primary", reason: "token_future" });
});

test("a replica that caught up while the primary was asked serves at once", async () => {
  const bench = await startBench();
  bench.primary.lsn = AHEAD;
  bench.primary.behaviour = "held";
  const later = routeLater(bench, { positions: [at(AHEAD)] });
  bench.one.lsn = AHEAD;
  await bench.pass(30);
  const before = later.result;

  bench.primary.release();
  await settle();

  expect([before, later.result]).toEqual([undefined, { by: "one", reason: "replica" }]);
});

test("what a primary had reached is forgotten when it restarts further back", async () => {
  const bench = await startBench(({ primary }) => (primary.lsn = AHEAD));
  bench.primary.lsn = START_LSN;
  bench.primary.startedAt = "later";
  await bench.pass(260);

  const later = routeLater(bench, { positions: [at(AHEAD)] });
  await settle();

  expect(later.result).toEqual({ by: "primary", reason: "token_future" });
});

test("a primary that does not answer the check within the budget serves the read itself", async () => {
  const bench = await startBench();
  bench.primary.behaviour = "hangs";
  const later = routeLater(bench, { positions: [at(AHEAD)] });

  await bench.pass(100);

  expect(later.result).toEqual({ by: "primary", reason: "wait_timeout" });
  expect(bench.events).toEqual(["oracle_failed"]);
});

test("replicas that cover a position serve while no primary is known", async () => {
  const bench = await startBench();
  bench.primary.behaviour = "refuses";
  bench.primary.breakConnections();
  await settle();

  expect(bench.primary.server.role).toBe("unknown");
  expect(routeNow(bench, { positions: [at(START_LSN)] })).toEqual({
    by: "one,two",
    reason: "replica",
  });
});

test("a replica that restarts further back is not trusted with what it had", async () => {
  const bench = await startBench(({ primary, one }) => (primary.lsn = one.lsn = AHEAD));
  const before = routeNow(bench, { positions: [at(AHEAD)] }).by;
  bench.one.lsn = START_LSN;
  bench.one.breakConnections();

  const covers = bench.cluster.covers(bench.one.server, [at(AHEAD)]);
  const later = routeLater(bench, { positions: [at(AHEAD)] });
  await bench.pass(100);

  expect([before, covers]).toEqual(["one", false]);
  expect(later.result).toEqual({ by: "primary", reason: "wait_timeout" });
});

test("a decision about a replica is current until its epoch, its replay or its role changes", async () => {
  const bench = await startBench();
  const { cluster, one } = bench;
  const epoch = one.server.epoch;
  const check = (lsn: bigint): boolean => cluster.isCurrent(one.server, epoch, [at(lsn)]);
  const first = [check(START_LSN), check(AHEAD)];

  one.pauseState = "paused";
  await bench.pass(250);
  const paused = check(START_LSN);
  one.pauseState = "not paused";
  await bench.pass(250);
  const resumed = check(START_LSN);
  one.startedAt = "later";
  await bench.pass(260);
  const restarted = check(START_LSN);

  expect([first, paused, resumed, restarted]).toEqual([[true, false], false, true, false]);
  expect(cluster.isCurrent(one.server, one.server.epoch, [at(START_LSN)])).toBe(true);
});

test("a decision about the primary is current while it is the primary", async () => {
  const bench = await startBench();
  const { cluster, primary } = bench;
  const first = cluster.isCurrent(primary.server, primary.server.epoch, []);
  primary.isInRecovery = true;
  const epoch = primary.server.epoch;

  await bench.pass(260);

  expect([first, cluster.isCurrent(primary.server, epoch, [])]).toEqual([true, false]);
});

test("replicas are watched closely for a second after a read with a position", async () => {
  const bench = await startBench();
  routeNow(bench, { positions: [at(START_LSN)] });

  await bench.pass(1_500);

  const polls = bench.one.polls.map((poll) => poll.at);
  expect(polls.slice(0, 4)).toEqual([0, 25, 50, 75]);
  expect(polls.filter((time) => time > 1_025)).toEqual([1_275]);
  expect(bench.primary.polls.map((poll) => poll.at)).toEqual([
    0, 250, 500, 750, 1_000, 1_250, 1_500,
  ]);
});

test("a snapshot tells what is known of each server", async () => {
  const bench = await startBench(({ primary }) => (primary.lsn = AHEAD));
  bench.two.behaviour = "refuses";
  bench.two.breakConnections();
  routeLater(bench, { positions: [at(AHEAD)] });
  await settle();

  expect(bench.cluster.snapshot()).toEqual([
    {
      name: "one",
      role: "replica",
      epoch: 0,
      leased: 0,
      waiting: 1,
      position: at(START_LSN),
      isReplayPaused: false,
      sampleAgeMs: 0,
    },
    {
      name: "two",
      role: "unknown",
      epoch: 1,
      leased: 0,
      waiting: 0,
      position: undefined,
      isReplayPaused: false,
      sampleAgeMs: undefined,
    },
    {
      name: "primary",
      role: "primary",
      epoch: 0,
      leased: 0,
      waiting: 0,
      position: at(AHEAD),
      isReplayPaused: false,
      sampleAgeMs: 0,
    },
  ]);
});

test("a server that is not of this database covers nothing", async () => {
  const bench = await startBench();
  const stranger = { ...bench.one.server };

  expect(bench.cluster.covers(stranger, [])).toBe(false);
});
