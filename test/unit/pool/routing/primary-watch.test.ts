// Who the primary is, and waiting for one; through the cluster that feeds the watch.
import { expect, test } from "bun:test";
import { PRIMARY_WAITERS_MAX } from "#pool/routing/primary-watch.ts";
import { settle } from "#test/unit/pool/consistency/scripted-server.ts";
import { routeLater, routeNow, startBench } from "./cluster-bench.ts";

test("roles are found by asking, whatever the order of the configuration is", async () => {
  const bench = await startBench();

  expect([bench.one, bench.two, bench.primary].map(({ server }) => server.role)).toEqual([
    "replica",
    "replica",
    "primary",
  ]);
  expect(routeNow(bench, { access: "primary" })).toEqual({ by: "primary", reason: "write" });
});

test("a write waits for a primary and goes on as soon as one is found", async () => {
  const bench = await startBench(({ primary }) => (primary.behaviour = "refuses"));
  const later = routeLater(bench, { access: "primary", deadline: 1_000 });
  await bench.pass(249);
  const before = later.result;
  bench.primary.behaviour = "answers";

  await bench.pass(1);

  expect([before, later.result]).toEqual([undefined, { by: "primary", reason: "write" }]);
});

test("without a primary a write fails at its deadline, not earlier", async () => {
  const bench = await startBench(({ primary }) => (primary.behaviour = "refuses"));
  const later = routeLater(bench, { access: "primary", deadline: 1_000 });

  await bench.pass(999);
  const before = later.result;
  await bench.pass(1);

  expect(before).toBeUndefined();
  expect(later.result).toMatchObject({
    code: "ERR_NO_SERVER",
    sqlState: "57P03",
    message: 'no primary is known for database "app"',
    cause: { code: "ERR_CONNECT_FAILED" },
  });
});

test("waiting until ready ends with the first primary", async () => {
  const bench = await startBench(({ primary }) => (primary.behaviour = "refuses"));
  let isReady = false;
  void bench.cluster.waitUntilReady(1_000).then(() => (isReady = true));
  await bench.pass(10);
  const before = isReady;
  bench.primary.behaviour = "answers";
  await bench.pass(240);

  expect([before, isReady]).toEqual([false, true]);
});

test("of two primaries the one with the higher timeline serves and the other is nobody's", async () => {
  const bench = await startBench();
  bench.one.isInRecovery = false;
  bench.one.timeline = 2;

  await bench.pass(251);

  expect(routeNow(bench, { access: "primary" })).toEqual({ by: "one", reason: "write" });
  expect([bench.one, bench.primary].map(({ server }) => server.role)).toEqual([
    "primary",
    "unknown",
  ]);
  expect(bench.events.filter((event) => event === "two_primaries")).toHaveLength(1);
});

test("when the promoted one is away for a moment, nobody goes back to the one before it", async () => {
  const bench = await startBench();
  bench.one.isInRecovery = false;
  bench.one.timeline = 2;
  await bench.pass(251);
  bench.one.behaviour = "refuses";
  bench.one.breakConnections();
  await bench.pass(1_000);

  const later = routeLater(bench, { access: "primary", deadline: bench.clock.now() + 30_000 });
  await bench.pass(1_000);
  const meanwhile = later.result;
  bench.one.behaviour = "answers";
  await bench.pass(10_000);

  expect(bench.primary.server.role).toBe("unknown");
  expect(meanwhile).toBeUndefined();
  expect(later.result).toMatchObject({ by: "one" });
});

test("the higher timeline wins from the later place in the configuration too", async () => {
  const bench = await startBench(({ one, primary }) => {
    one.isInRecovery = false;
    primary.isInRecovery = true;
  });
  const before = routeNow(bench, { access: "primary" }).by;
  bench.primary.isInRecovery = false;
  bench.primary.timeline = 2;

  await bench.pass(251);

  expect([before, routeNow(bench, { access: "primary" }).by]).toEqual(["one", "primary"]);
});

test("of two primaries with one timeline the present one stays", async () => {
  const bench = await startBench();
  // Earlier in the configuration, but found later.
  bench.one.isInRecovery = false;

  await bench.pass(1_000);

  expect(routeNow(bench, { access: "primary" })).toEqual({ by: "primary", reason: "write" });
  expect(bench.events.filter((event) => event === "two_primaries")).toHaveLength(1);
});

test("a primary of another system never takes over from the present one by its timeline", async () => {
  const bench = await startBench();
  bench.one.isInRecovery = false;
  bench.one.timeline = 9;
  bench.one.systemIdentifier = 5n;

  await bench.pass(1_000);

  expect(routeNow(bench, { access: "primary" })).toEqual({ by: "primary", reason: "write" });
});

test("10,000 may wait for a primary, the next is turned away", async () => {
  const bench = await startBench(({ primary }) => (primary.behaviour = "refuses"));
  const waiting = Array.from({ length: PRIMARY_WAITERS_MAX }, () =>
    routeLater(bench, { access: "primary" }),
  );
  const over = routeLater(bench, { access: "primary" });
  await settle();

  expect(over.result).toMatchObject({ code: "ERR_WAIT_QUEUE_FULL", sqlState: "53300" });
  expect(waiting.filter((one) => one.result !== undefined)).toEqual([]);
});

test("stopping rejects whoever waits and leaves no timer", async () => {
  const bench = await startBench(({ primary }) => (primary.behaviour = "refuses"));
  const later = routeLater(bench, { access: "primary" });

  bench.cluster.stop();
  const after = routeLater(bench, { access: "primary" });
  await settle();

  const stopped = { code: "ERR_SHUTTING_DOWN", sqlState: "57P01" };
  expect([later.result, after.result]).toMatchObject([stopped, stopped]);
  expect([bench.clock.timerCount, bench.one.connectionCount]).toEqual([0, 0]);
});
