// Clients that vanish in the middle of anything, on a pool of one connection: whoever comes next finds a clean session, and nothing runs on.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import {
  RawClient,
  bind,
  execute,
  frontendFrame,
  int32,
  parse,
  sync,
} from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

/** The time in which a statement of a client that has gone must be cancelled. */
const CANCEL_MS_MAX = 2_000;

let cluster: Cluster;
let trusted: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  trusted = await testGateway(cluster, {
    sections: {
      "profiles.server": "default_pool_size = 1",
      "profiles.app": "default_pool_size = 1",
    },
  });
  await cluster.primary.sql(
    `create table kept (id int);
     alter table kept owner to app;
     grant all on kept to app_user;
     grant temp on database app to app_user`,
  );
});
beforeEach(async () => {
  await cluster.primary.sql("truncate kept");
});
afterAll(async () => {
  await trusted.stop();
  await cluster.stop();
});

const USERS = ["app", "app_user"] as const;
type User = (typeof USERS)[number];

function login(user: User, parameters: Readonly<Record<string, string>> = {}): Promise<RawClient> {
  const { port } = trusted.postgres;
  return RawClient.login({ port, user, password: cluster.passwords[user], parameters });
}

/** What one session can leave to the next, read by the next one. */
const TRACES = `select to_regclass('pg_temp.mine') as temp, current_setting('work_mem'),
  current_setting('wg.mark', true), current_setting('transaction_isolation'),
  (select count(*) from pg_locks where locktype = 'advisory'),
  (select count(*) from pg_prepared_statements where name !~ '^_walgate|^wg_'),
  (select count(*) from pg_cursors), (select count(*) from pg_listening_channels()),
  (select count(*) from kept), current_setting('application_name')`;
const CLEAN = [null, "4MB", "", "read committed", "0", "0", "0", "0", "0", ""];

/** An unset custom setting is NULL until somebody has ever set it, and the empty text from then on. */
function normalized(row: readonly (string | null)[] | undefined): readonly (string | null)[] {
  return (row ?? []).map((value, index) => (index === 2 ? (value ?? "") : value));
}

const STATE = [
  "set work_mem = '7MB'",
  "set wg.mark = 'mine'",
  "create temp table mine (a int)",
  "prepare mine as select 1",
  "listen mine",
  "select pg_advisory_lock(77)",
  "declare mine cursor with hold for select 1",
];

const QUARTER_MB = 262_144;
const half = (frame: Uint8Array): Uint8Array => frame.subarray(0, frame.length / 2);

const ENDINGS: readonly (readonly [string, (client: RawClient) => Promise<unknown>])[] = [
  ["idle with session state", async () => {}],
  [
    "inside a transaction",
    async (client) => client.query("begin; insert into kept values (1); select 1"),
  ],
  ["inside a failed transaction", async (client) => client.query("begin; select 1/0")],
  [
    "inside a copy",
    async (client) => {
      client.send(frontendFrame("Q", "copy kept from stdin"));
      await client.until("G");
      await client.sent(frontendFrame("d", new TextEncoder().encode("1\n2\n")));
    },
  ],
  [
    "inside a copy of the extended protocol, behind a Sync",
    async (client) => {
      client.send(parse("", "copy kept from stdin"), bind(""), execute(), sync);
      await client.until("G");
    },
  ],
  [
    "inside a copy's message",
    async (client) => {
      client.send(frontendFrame("Q", "copy kept from stdin"));
      await client.until("G");
      await client.sent(half(frontendFrame("d", new Uint8Array(QUARTER_MB).fill(0x31))));
    },
  ],
  [
    "inside a large query",
    async (client) => client.sent(half(frontendFrame("Q", `select '${"x".repeat(QUARTER_MB)}'`))),
  ],
  [
    "inside a large parameter",
    async (client) => {
      const large = bind("", "x".repeat(QUARTER_MB));
      await client.sent(parse("", "insert into kept select length($1)"), half(large));
    },
  ],
  [
    "inside a small message",
    async (client) => client.sent(concatBytes([new TextEncoder().encode("Q"), int32(40)])),
  ],
  [
    "before a Sync",
    async (client) =>
      client.sent(parse("named", "insert into kept values (1)"), bind("named"), execute()),
  ],
  [
    "with a statement that runs",
    async (client) => {
      client.send(frontendFrame("Q", "insert into kept select 1 from pg_sleep(60)"));
      await pollUntil(() => isSleeping(true), 5_000, "the statement runs");
    },
  ],
  [
    "with a portal that is half read",
    async (client) => {
      client.send(
        frontendFrame("Q", "begin"),
        parse("", "select generate_series(1, 100)"),
        bind(""),
        execute(5),
        frontendFrame("H"),
      );
      await client.until("s");
    },
  ],
  [
    "with a large result unread",
    async (client) => {
      client.send(frontendFrame("Q", "select repeat('x', 1000) from generate_series(1, 100000)"));
      await client.message();
      client.pause();
    },
  ],
];

async function isSleeping(expected: boolean): Promise<boolean> {
  const rows = await cluster.primary.sql(
    "select from pg_stat_activity where state = 'active' and query ~ '^insert into kept.*pg_sleep'",
  );
  return rows.length > 0 === expected;
}

for (const user of USERS) {
  test.each(ENDINGS.map(([name, ending]) => [name, ending] as const))(
    `a client of ${user} that is killed %s leaves nothing to the next one`,
    async (_, ending) => {
      const victim = await login(user, { application_name: "victim" });
      for (const statement of STATE) await victim.query(statement);
      await ending(victim);

      victim.destroy();
      const killedAt = performance.now();
      await pollUntil(() => isSleeping(false), CANCEL_MS_MAX, "the statement is cancelled");
      const next = await login(user);
      const { rows, errors } = await next.query(TRACES);
      next.terminate();

      expect({ errors, row: normalized(rows[0]) }).toEqual({ errors: [], row: CLEAN });
      expect(performance.now() - killedAt).toBeLessThan(CANCEL_MS_MAX);
    },
  );

  test(`a client of ${user} that is killed without session state leaves nothing either`, async () => {
    const left: unknown[] = [];
    for (const [name, ending] of ENDINGS) {
      const victim = await login(user, { application_name: "victim" });
      await ending(victim);
      victim.destroy();
      const next = await login(user);
      const { rows, errors } = await next.query(TRACES);
      next.terminate();
      left.push([name, errors, normalized(rows[0])]);
    }

    expect(left).toEqual(ENDINGS.map(([name]) => [name, [], CLEAN]));
  });
}

test("an orderly Terminate lets what was sent before it be carried out", async () => {
  const client = await login("app");
  client.send(
    frontendFrame("Q", "insert into kept select 1 from pg_sleep(0.2)"),
    frontendFrame("X"),
  );
  await client.ended();
  const next = await login("app");
  const { rows } = await next.query("select count(*) from kept");
  next.terminate();

  expect(rows).toEqual([["1"]]);
});
