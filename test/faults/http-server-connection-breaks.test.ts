// The server connection of an HTTP request is lost: before a row, between rows, and inside a transaction. One error each, and the next request works.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { eventually, postQuery, postSql } from "../integration/http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  await cluster.primary.sql("create table item (id int); alter table item owner to app");
  gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 1\nquery_wait_timeout = 1" },
  });
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

/** Once the statement runs. */
async function terminate(query: string): Promise<void> {
  await eventually(async () => {
    const rows = await cluster.primary.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where usename = 'app' and state = 'active' and query like '%${query}%'`,
    );
    return rows.length === 1;
  });
}

test("a query whose backend is terminated gets its 57P01 and no other client notices", async () => {
  const running = postQuery(gateway, "select pg_sleep(60)");
  await terminate("pg_sleep(60)");

  expect(await running).toMatchObject({ status: 503, body: { code: "57P01" } });
  expect(await postQuery(gateway, "select 1")).toMatchObject({ status: 200 });
});

test("a query whose backend is terminated between rows is an error, not half a result", async () => {
  const running = postQuery(
    gateway,
    "select n, case when n = 2000 then pg_sleep(60)::text end from generate_series(1, 3000) n",
  );
  await terminate("generate_series");

  expect(await running).toMatchObject({ status: 503, body: { code: "57P01" } });
  expect(await postQuery(gateway, "select 1")).toMatchObject({ status: 200 });
});

test("a batch whose backend is terminated is an error, and nothing of it is there", async () => {
  const running = postSql(gateway, cluster, {
    queries: [{ query: "insert into item values (1)" }, { query: "select pg_sleep(60)" }],
  });
  await terminate("pg_sleep(60)");

  expect(await running).toMatchObject({ status: 400, body: { code: "57P01" } });
  expect((await postSql(gateway, cluster, { query: "select * from item" })).body).toMatchObject({
    rows: [],
  });
});

test("a query that gets no connection in time fails with 57014", async () => {
  const holder = postQuery(gateway, "select pg_sleep(1.5)");
  await eventually(async () => {
    const rows = await cluster.primary.sql(
      "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
    );
    return rows.length === 1;
  });

  expect(await postQuery(gateway, "select 1")).toMatchObject({
    status: 504,
    body: { code: "57014" },
  });
  expect(await holder).toMatchObject({ status: 200 });
});

test("a batch that gets no connection waits once, not once for its COMMIT too", async () => {
  const holder = postQuery(gateway, "select pg_sleep(2.5)");
  await eventually(async () => {
    const rows = await cluster.primary.sql(
      "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
    );
    return rows.length === 1;
  });

  const startedAt = performance.now();
  const batch = await postSql(gateway, cluster, { queries: [{ query: "select 1" }] });

  expect(batch).toMatchObject({ status: 400, body: { code: "57014" } });
  expect(performance.now() - startedAt).toBeLessThan(1_800);
  await holder;
});
