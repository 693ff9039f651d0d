// Roles, histories and replay positions of a real primary with two replicas.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { parseLsn } from "#pool/consistency/lsn.ts";
import type { Position } from "#pool/consistency/position.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { nodeOf, RealCluster } from "./position-monitor-real-cluster.ts";

const PAGE_BYTES = 8192;
const PAGE_HEADER_BYTES = 24;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster();
});

afterAll(async () => {
  await cluster.stop();
});

async function start(): Promise<RealCluster> {
  const real = new RealCluster(cluster, ["replica2", "primary", "replica1"]);
  real.router.start();
  await real.router.waitUntilReady(real.clock.now() + 5_000);
  await real.until(() => real.servers.every((server) => server.role !== "unknown"), 5_000);
  return real;
}

async function cell(name: "primary" | "replica1", sql: string): Promise<string> {
  const [row] = await nodeOf(cluster, name).sql(`SELECT (${sql})::text AS cell`);
  const value = row?.["cell"];
  if (typeof value !== "string") throw new Error(`no cell from ${sql}`);
  return value;
}

test("roles and identity are found by asking as a role without rights, whatever the configured order is", async () => {
  using real = await start();

  const position = await real.position();

  expect(real.servers.map((server) => server.role)).toEqual(["replica", "primary", "replica"]);
  expect([position.systemIdentifier.toString(), position.timeline]).toEqual([
    await cell("primary", "SELECT system_identifier FROM pg_control_system()"),
    1,
  ]);
  const histories = real.router.snapshot().map((one) => one.position?.timeline);
  expect(histories).toEqual([1, 1, 1]);
});

test("a read with a commit's position is served by the replicas once they have it", async () => {
  using real = await start();
  await cluster.primary.sql("CREATE TABLE IF NOT EXISTS freshness (value int)");
  await cluster.primary.sql("INSERT INTO freshness VALUES (1)");

  const served = await real.read([await real.position()], 2_000);

  expect(served.startsWith("replica: replica")).toBe(true);
});

test("a replica whose replay is paused leaves routing within half a second, and the primary serves when both are", async () => {
  using real = await start();
  await nodeOf(cluster, "replica1").sql("SELECT pg_wal_replay_pause()");
  try {
    // One idle poll, 250 ms, and what a busy machine adds.
    await real.until(async () => (await real.read([], 0)) === "replica: replica2", 500);
    await nodeOf(cluster, "replica2").sql("SELECT pg_wal_replay_pause()");
    await real.until(async () => (await real.read([], 0)) === "no_replica: primary", 500);
  } finally {
    for (const replica of cluster.replicas) await replica.sql("SELECT pg_wal_replay_resume()");
  }
  await real.until(async () => (await real.read([], 0)) === "replica: replica1 replica2", 500);
});

test("the gate lets a read go when replay moves again, and not before", async () => {
  using real = await start();
  // A lock that a query on the replica holds stops replay without a pause.
  await cluster.primary.sql("CREATE TABLE IF NOT EXISTS gate (value int)");
  await real.read([await real.position()], 2_000);
  const release = await holdReplay(real);
  const position = await writeBehindLock(real);
  let served: string | undefined;
  const reading = real.read([position], 3_000).then((text) => (served = text));
  await real.until(() => real.router.snapshot().some((one) => one.waiting > 0), 1_000);
  const before = served;

  await release();
  await reading;

  expect([before, served?.startsWith("replica: ")]).toEqual([undefined, true]);
});

/** Both replicas hold a lock on the table until the returned function ends the queries. */
async function holdReplay(real: RealCluster): Promise<() => Promise<void>> {
  const sleeping = "SELECT count(*), pg_sleep(20) FROM gate";
  const queries = cluster.replicas.map((replica) => replica.sql(sleeping).catch(() => []));
  const countSleeping =
    "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(20)%' AND wait_event = 'PgSleep'";
  for (const replica of cluster.replicas) {
    await real.until(async () => (await replica.sql(countSleeping)).length === 1, 5_000);
  }
  return async () => {
    for (const replica of cluster.replicas) {
      await replica.sql(`SELECT pg_terminate_backend(pid) FROM (${countSleeping}) AS sleeping`);
    }
    await Promise.all(queries);
  };
}

/** TRUNCATE's lock record cannot be replayed while a query holds the table. */
async function writeBehindLock(real: RealCluster): Promise<Position> {
  await cluster.primary.sql("TRUNCATE gate");
  return real.position();
}

test("a commit that ends exactly at a page's end has a position that replicas reach at once", async () => {
  using real = await start();
  const raw = await steerToPageBoundary();

  const position = await real.position();
  const served = await real.read([position], 2_000);
  const replayed = parseLsn(await cell("replica1", "pg_last_wal_replay_lsn()"));

  expect(position.lsn).toBe(raw - BigInt(PAGE_HEADER_BYTES));
  expect(served.startsWith("replica: ")).toBe(true);
  // What makes the rule necessary: the raw position is not reached.
  expect(replayed).toBe(position.lsn);
});

/** Writes messages until the insert position sits behind a page header; the raw position. */
async function steerToPageBoundary(): Promise<bigint> {
  // The bytes that one message costs beyond its text, learned from the last one.
  let overhead = 200;
  for (let attempt = 0; attempt < 100; attempt++) {
    const before = await insertLsn();
    const left = PAGE_BYTES - Number(before % BigInt(PAGE_BYTES));
    const text = left - overhead;
    const size = text < 8 ? 8 : text;
    await cluster.primary.sql(
      `SELECT pg_logical_emit_message(true, '', repeat('x', ${String(size)}))`,
    );
    const after = await insertLsn();
    if (after % BigInt(PAGE_BYTES) === BigInt(PAGE_HEADER_BYTES)) return after;
    const crossed = Number(after / BigInt(PAGE_BYTES) - before / BigInt(PAGE_BYTES));
    if (crossed <= 1) overhead = Number(after - before) - size - crossed * PAGE_HEADER_BYTES;
  }
  throw new Error("no record ended at a page's end");
}

async function insertLsn(): Promise<bigint> {
  const lsn = parseLsn(await cell("primary", "pg_current_wal_insert_lsn()"));
  if (lsn === undefined) throw new Error("unreadable position");
  return lsn;
}
