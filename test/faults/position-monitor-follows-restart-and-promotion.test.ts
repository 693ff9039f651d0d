// A replica that crashes and comes back, a monitor that is killed, and a failover, on real PostgreSQL.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { nodeOf, RealCluster } from "#test/integration/position-monitor-real-cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";

let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster();
});

afterAll(async () => {
  await cluster.stop();
});

async function start(): Promise<RealCluster> {
  const real = new RealCluster(cluster, ["replica1", "replica2", "primary"]);
  real.router.start();
  await real.router.waitUntilReady(real.clock.now() + 5_000);
  await real.until(() => real.servers.every((server) => server.role !== "unknown"), 5_000);
  return real;
}

test("a replica that crashes begins a new epoch and serves again after its return", async () => {
  using real = await start();
  const replica = real.server("replica1");
  const { epoch } = replica;
  const position = await real.position();

  await cluster.kill("replica1");
  await real.until(() => replica.role === "unknown", 1_000);
  const whileDown = [replica.epoch > epoch, real.router.covers(replica, [])];
  await cluster.start("replica1");
  // Attempts are up to 5 s apart by then.
  await real.until(() => real.router.covers(replica, [position]), 10_000);

  expect(whileDown).toEqual([true, false]);
  expect(real.router.isCurrent(replica, epoch, [])).toBe(false);
});

test("a primary whose monitor connection is killed is found again within a second", async () => {
  using real = await start();
  const primary = real.server("primary");
  const { epoch } = primary;
  // Younger connections are replaced after a pause.
  const openedAt = real.clock.now();
  await real.until(() => real.clock.now() - openedAt > 1_100, 2_000);

  await cluster.primary.sql(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'walgate'",
  );
  await real.until(() => primary.epoch > epoch, 1_000);

  expect(await real.until(() => primary.role === "primary", 1_000)).toBeLessThan(1_000);
});

test("a promoted replica becomes the primary, and positions and replicas of the old timeline stop counting", async () => {
  using real = await start();
  const [promoted, follower] = [real.server("replica1"), real.server("replica2")];
  const { epoch } = promoted;
  const old = await real.position();
  const ticket = real.router.ticket();
  await cluster.stopServer("primary", "fast");
  await real.until(() => real.server("primary").role === "unknown", 1_000);
  const during = await real.read([old], 1_000);

  await nodeOf(cluster, "replica1").sql("SELECT pg_promote()");
  await real.router.waitUntilReady(real.clock.now() + 5_000);

  expect(during.startsWith("replica: ")).toBe(true);
  expect([promoted.role, promoted.epoch > epoch]).toEqual(["primary", true]);
  expect((await real.position()).timeline).toBe(2);
  expect(await real.read([old], 100)).toBe("token_foreign: replica1");
  // The other one still follows the primary that is gone.
  expect([real.router.covers(follower, []), await real.read([], 0)]).toEqual([
    false,
    "no_replica: replica1",
  ]);
  await real.until(() => real.router.sampledAfter(ticket)?.timeline === 2, 1_000);
});
