// A client that goes away in the middle of its request: PostgreSQL stops working for it, and the connection serves the next one.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { connectionString, eventually, postSql } from "./http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  await cluster.primary.sql("create table item (id int); alter table item owner to app");
  gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 1" },
  });
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

async function active(): Promise<number> {
  const rows = await cluster.primary.sql(
    "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
  );
  return rows.length;
}

async function idleBackends(): Promise<readonly unknown[]> {
  const rows = await cluster.primary.sql(
    "select pid, state from pg_stat_activity where usename = 'app' and backend_type = 'client backend'",
  );
  return rows.map((row) => Object.values(row));
}

for (const [title, body] of [
  ["a statement", { query: "insert into item select 1 from pg_sleep(60)" }],
  [
    "a batch",
    { queries: [{ query: "insert into item values (1)" }, { query: "select pg_sleep(60)" }] },
  ],
] as const) {
  test(`${title} is cancelled when its client goes away, and leaves nothing`, async () => {
    const before = (await postSql(gateway, cluster, { query: "select pg_backend_pid()" })).body;
    const client = new AbortController();
    const request = fetch(`${gateway.http}/sql`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Neon-Connection-String": connectionString(cluster) },
      signal: client.signal,
    }).then(
      () => "answered",
      () => "aborted",
    );
    await eventually(async () => (await active()) === 1);

    client.abort();

    expect(await request).toBe("aborted");
    await eventually(async () => (await active()) === 0);
    // The pool holds one connection only: it must have become free, and clean, for this.
    const after = await postSql(gateway, cluster, { query: "select pg_backend_pid()" });
    expect(after.body).toEqual(before);
    expect((await postSql(gateway, cluster, { query: "select * from item" })).body).toMatchObject({
      rows: [],
    });
    expect(gateway.gateway.context.clients.clients).toBe(0);
    expect(await idleBackends()).toHaveLength(1);
  });
}

test("a client that goes away while it waits for a connection leaves the queue", async () => {
  const holder = new AbortController();
  const request = (query: string, signal: AbortSignal) =>
    fetch(`${gateway.http}/sql`, {
      method: "POST",
      body: JSON.stringify({ query }),
      headers: { "Neon-Connection-String": connectionString(cluster) },
      signal,
    }).catch((error: unknown) => error);
  const held = request("select pg_sleep(60)", holder.signal);
  await eventually(async () => (await active()) === 1);
  const waiter = new AbortController();
  const waiting = request("insert into item values (2)", waiter.signal);
  const waiters = () =>
    gateway.gateway.context.environment.pools
      .snapshot()
      .reduce((sum, pool) => sum + pool.waiting, 0);
  await eventually(() => waiters() === 1);

  waiter.abort();

  await eventually(() => waiters() === 0);
  holder.abort();
  await Promise.all([held, waiting]);
  expect((await postSql(gateway, cluster, { query: "select * from item" })).body).toMatchObject({
    rows: [],
  });
});
