// Server connections that die under a client: what it costs that client, and that it costs nobody else anything.
import { afterAll, beforeAll, beforeEach, afterEach, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { RawClient, bind, execute, frontendFrame, parse, sync } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;
let client: RawClient;
let other: RawClient;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
  gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 4", pool: "server_login_retry = 0.2" },
  });
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});
beforeEach(async () => {
  const login = { port: gateway.postgres.port, password: cluster.passwords.app };
  client = await RawClient.login(login);
  other = await RawClient.login(login);
});
afterEach(async () => {
  client.destroy();
  other.destroy();
});

/** Waits until a session runs `text` on a server, and ends it there. */
async function terminate(text: string, server = cluster.primary): Promise<void> {
  await pollUntil(
    async () =>
      (
        await server.sql(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where query like '${text}%' and pid <> pg_backend_pid() and usename = 'app'`,
        )
      ).length > 0,
    5_000,
    "the statement is found",
  );
}

test("a backend killed mid-query costs its client one error, and the next query is served", async () => {
  client.send(frontendFrame("Q", "/* victim */ select txid_current(), pg_sleep(60)"));
  await terminate("/* victim */");
  const broken = await client.untilReady();
  const next = await client.query("select 'next'");
  const others = await other.query("select 'other'");

  expect(broken).toEqual({ rows: [], tags: [], errors: ["57P01"], types: "TEZ", status: "I" });
  expect(next.rows).toEqual([["next"]]);
  expect(others.rows).toEqual([["other"]]);
});

test("a backend killed mid-pipeline costs one error up to the next Sync, and later segments are served", async () => {
  client.send(
    parse("", "select pg_sleep(60), set_config('a.b', 'victim pipe', true)"),
    bind(""),
    execute(),
    parse("", "select 'dropped'"),
    bind(""),
    execute(),
    sync,
    parse("", "select 'served'"),
    bind(""),
    execute(),
    sync,
  );
  await terminate("select pg_sleep(60), set_config");
  const answers = await client.untilReady(2);
  const next = await client.query("select 'next'");

  expect(answers.errors).toContain("57P01");
  expect(answers.rows.flat()).not.toContain("dropped");
  expect(next.rows).toEqual([["next"]]);
});

test("a backend killed inside a transaction ends its client's session, as without a gateway", async () => {
  await client.query("begin");
  await client.query("/* open */ select 1");
  await terminate("/* open */");
  const broken = await client.rest();
  const others = await other.query("select 'other'");

  expect(broken.errors).toEqual(["57P01"]);
  expect(others.rows).toEqual([["other"]]);
});

test("a backend killed in the middle of a row closes its client only", async () => {
  // One row of 60 MB that nobody reads: most of it is still on its way when the backend dies.
  client.send(frontendFrame("Q", "/* row */ select repeat('x', 60000000), txid_current()"));
  await client.bytes(1_000);
  client.pause();
  await terminate("/* row */");
  const others = await other.query("select 'other'");
  client.resume();
  await client.ended();
  const late = await other.query("select 'late'");

  expect(others.rows).toEqual([["other"]]);
  expect(late.rows).toEqual([["late"]]);
});

test("a replica killed in the middle of a row closes its client only, and reads go on elsewhere", async () => {
  client.send(frontendFrame("Q", "/* row */ select repeat('x', 60000000)"));
  await client.bytes(1_000);
  client.pause();
  await cluster.kill("replica1");
  const others: unknown[] = [];
  for (let i = 0; i < 20; i++) others.push(await other.query("select 'other'"));
  client.resume();
  await client.ended();
  await cluster.start("replica1");

  const served = others.filter((answer) => JSON.stringify(answer).includes('"other"'));
  expect(served.length).toBeGreaterThanOrEqual(19);
});
