// Session and statement mode, the reset query, and what a stop of the gateway does to its clients.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { RawClient, bind, execute, frontendFrame, parse, sync } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
});
afterAll(() => cluster.stop());

function login({ postgres }: TestGateway): Promise<RawClient> {
  return RawClient.login({ port: postgres.port, password: cluster.passwords.app });
}

function start(profile: string, gateway = ""): Promise<TestGateway> {
  return testGateway(cluster, { sections: { "profiles.server": profile, gateway } });
}

const STATE = `select current_setting('work_mem'), to_regclass('pg_temp.mine'),
  (select count(*) from pg_prepared_statements)`;

async function appSessions(): Promise<number> {
  const rows = await cluster.primary.sql("select from pg_stat_activity where usename = 'app'");
  return rows.length;
}

test("session mode keeps one connection for a client, state and all, and cleans it for the next", async () => {
  await using gateway = await start('pool_mode = "session"\ndefault_pool_size = 1');
  const first = await login(gateway);
  const firstPid = await first.query("select pg_backend_pid()");
  await first.query("set work_mem = '9MB'");
  await first.query("create temp table mine (a int)");
  await first.query("prepare mine as select 1");
  first.send(parse("named", "select 'named'"), sync);
  await first.untilReady();
  const kept = await first.query(STATE);
  first.send(bind("named"), execute(), sync);
  const named = await first.untilReady();
  const sameplace = await first.query("select pg_backend_pid()");
  first.terminate();
  await first.ended();
  const second = await login(gateway);
  const cleaned = await second.query(STATE);
  const secondPid = await second.query("select pg_backend_pid()");
  second.terminate();

  expect(kept.rows[0]?.slice(0, 2)).toEqual(["9MB", "mine"]);
  expect(named.rows).toEqual([["named"]]);
  expect(sameplace.rows).toEqual(firstPid.rows);
  expect(secondPid.rows).toEqual(firstPid.rows);
  expect(cleaned.rows).toEqual([["4MB", null, "0"]]);
});

test("a reset query of several statements is sent one by one, after a rollback, and no client sees its answers", async () => {
  await using gateway = await start(`pool_mode = "session"
    default_pool_size = 1
    server_reset_query = "RESET ALL; DISCARD TEMP; DEALLOCATE ALL; SET wg.reset = 'done'"`);
  const first = await login(gateway);
  await first.query("create temp table mine (a int)");
  await first.query("begin; set work_mem = '9MB'; prepare mine as select 1");
  first.terminate();
  await first.ended();
  const second = await login(gateway);
  const answer = await second.query(`${STATE}, current_setting('wg.reset', true)`);
  second.terminate();

  expect(answer).toEqual({
    rows: [["4MB", null, "0", "done"]],
    tags: ["SELECT 1"],
    errors: [],
    types: "TDCZ",
    status: "I",
  });
});

test("a reset query that fails costs the connection, not the next client", async () => {
  await using gateway = await start(`pool_mode = "session"
    default_pool_size = 1
    server_reset_query = "DISCARD ALL; SELECT 1/0"`);
  const first = await login(gateway);
  const before = await first.query("select pg_backend_pid()");
  first.terminate();
  await first.ended();
  const second = await login(gateway);
  const after = await second.query("select pg_backend_pid()");
  second.terminate();

  expect(after.errors).toEqual([]);
  expect(after.rows).not.toEqual(before.rows);
});

test("session mode makes the next client wait for a whole session", async () => {
  await using gateway = await start(
    'pool_mode = "session"\ndefault_pool_size = 1\nquery_wait_timeout = 0.3',
  );
  const first = await login(gateway);
  const second = await login(gateway);
  await first.query("select 1");
  const refused = await second.query("select 1");
  first.terminate();
  const served = await second.query("select 1");
  second.terminate();

  expect(refused.errors).toEqual(["57014"]);
  expect(served.rows).toEqual([["1"]]);
});

test("statement mode runs single statements and refuses what spans several", async () => {
  await using gateway = await start('pool_mode = "statement"\ndefault_pool_size = 1');
  const client = await login(gateway);
  const single = await client.query("select 1");
  const refused = [
    await client.query("begin"),
    await client.query("begin; select 1; commit"),
    await client.query("start transaction"),
  ];
  client.send(parse("", "begin"), bind(""), execute(), sync);
  refused.push(await client.untilReady());
  const after = await client.query("select 2");
  client.terminate();

  expect(single.rows).toEqual([["1"]]);
  expect(refused.map(({ errors, status }) => [errors.length, status])).toEqual(
    refused.map(() => [1, "I"]),
  );
  expect(after.rows).toEqual([["2"]]);
});

test("a stop ends idle clients with 57P01 at once, lets running ones finish, and leaves nothing behind", async () => {
  const gateway = await start("default_pool_size = 5", "");
  const [idle, running, open] = [await login(gateway), await login(gateway), await login(gateway)];
  await idle.query("select txid_current()");
  await open.query("begin");
  running.send(frontendFrame("Q", "select txid_current() is null, pg_sleep(0.5)"));
  await pollUntil(
    async () =>
      (
        await cluster.primary.sql(
          "select from pg_stat_activity where query ~ '^select txid.*sleep'",
        )
      ).length > 0,
    5_000,
    "the statement runs",
  );

  const stopping = gateway.stop();
  const startedAt = performance.now();
  const idleEnd = await idle.rest();
  const idleMs = performance.now() - startedAt;
  const refused = await RawClient.open(gateway.postgres.port).then(
    () => "accepted",
    () => "refused",
  );
  open.send(frontendFrame("Q", "select 'still open'"));
  const stillOpen = await open.untilReady();
  const runningEnd = await running.rest();
  const openEnd = await open.rest();
  await stopping;
  const stopMs = performance.now() - startedAt;
  await pollUntil(async () => (await appSessions()) === 0, 5_000, "no session is left");

  expect(idleEnd.errors).toEqual(["57P01"]);
  expect(idleMs).toBeLessThan(400);
  expect(refused).toBe("refused");
  expect(stillOpen.rows).toEqual([["still open"]]);
  expect(runningEnd).toMatchObject({ tags: ["SELECT 1"], errors: ["57P01"] });
  expect(openEnd.errors).toEqual(["57P01"]);
  expect(stopMs).toBeLessThan(4_000);
  expect(await appSessions()).toBe(0);
  const rest = await cluster.primary.sql(
    "select application_name from pg_stat_activity where application_name like 'walgate%' and application_name <> 'walgate-embedded'",
  );
  expect(rest).toEqual([]);
});

test("client_idle_timeout ends a client that is idle, and not one whose query ran longer than that", async () => {
  await using gateway = await start("default_pool_size = 2", "client_idle_timeout = 1");
  const idle = await login(gateway);
  const busy = await login(gateway);
  busy.send(frontendFrame("Q", "select pg_sleep(1.4)"));
  const idleEnd = await idle.rest();
  const slept = await busy.untilReady();
  const sleptAt = performance.now();
  const busyEnd = await busy.rest();
  const idleMs = performance.now() - sleptAt;

  expect(idleEnd.errors).toEqual(["57P05"]);
  expect(slept.tags).toEqual(["SELECT 1"]);
  expect(busyEnd.errors).toEqual(["57P05"]);
  expect(idleMs).toBeGreaterThan(900);
});
