// Settings that clients ask for when they log in, and who may see what of whom, with all clients on one server connection.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { RawClient, bind, execute, parse, sync } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
  gateway = await testGateway(cluster, {
    sections: {
      "profiles.server": "default_pool_size = 1",
      "profiles.app": 'default_pool_size = 1\nparameters = { statement_timeout = "41s" }',
    },
  });
  await cluster.primary.sql("grant temp on database app to app_user");
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

function login(
  parameters: Readonly<Record<string, string>> = {},
  user: "app" | "app_user" = "app",
): Promise<RawClient> {
  const { port } = gateway.postgres;
  return RawClient.login({ port, user, password: cluster.passwords[user], parameters });
}

async function principal(subject: string): Promise<RawClient> {
  const password = await gateway.token({ role: "authenticated", sub: subject });
  return RawClient.login({ port: gateway.postgres.port, user: "anyone", password });
}

const NAMES = [
  "application_name",
  "TimeZone",
  "DateStyle",
  "client_encoding",
  "search_path",
  "statement_timeout",
] as const;
const SHOW = `select ${NAMES.map((name) => `current_setting('${name}')`).join(", ")}`;
/** Goes to the primary, where SHOW alone may be served by the replica. */
const SHOW_ON_PRIMARY = `${SHOW}, txid_current() is null`;

const PLAIN = ["", "UTC", "ISO, MDY", "UTF8", '"$user", public', "0"];

const CLIENTS = [
  { parameters: {}, values: PLAIN },
  {
    parameters: {
      application_name: 'it\'s \\ "one"',
      TimeZone: "Asia/Tokyo",
      DateStyle: "German",
      client_encoding: "LATIN1",
      options: "-c search_path=pg_catalog,public -c statement_timeout=12345 --work-mem=9MB",
    },
    values: [
      'it\'s \\ "one"',
      "Asia/Tokyo",
      "German, DMY",
      "LATIN1",
      "pg_catalog,public",
      "12345ms",
    ],
  },
  {
    parameters: { application_name: "two", options: "-c statement_timeout=7s" },
    values: ["two", "UTC", "ISO, MDY", "UTF8", '"$user", public', "7s"],
  },
  {
    parameters: { timezone: "America/Lima", options: "-c application_name=a\\ b" },
    values: ["a b", "America/Lima", "ISO, MDY", "UTF8", '"$user", public', "0"],
  },
] as const;

test("settings of the startup packet are in force for their client only, on primary and replica, in any order", async () => {
  const clients = await Promise.all(CLIENTS.map(({ parameters }) => login(parameters)));
  const answers: unknown[] = [];
  const expected: unknown[] = [];
  const order = [0, 1, 2, 3, 2, 1, 0, 3, 0, 2, 0, 1, 1, 3];
  for (const index of order) {
    const text = index % 2 === 0 ? SHOW : SHOW_ON_PRIMARY;
    answers.push((await clients[index]?.query(text))?.rows[0]?.slice(0, NAMES.length));
    expected.push(CLIENTS[index]?.values);
  }
  for (const client of clients) client.terminate();

  expect(answers).toEqual(expected);
});

test("a client is told the values of its own settings", async () => {
  const reported = await Promise.all(
    CLIENTS.map(async ({ parameters }) => {
      const client = await login(parameters);
      client.terminate();
      return NAMES.slice(0, 4).map((name) => client.parameters.get(name));
    }),
  );

  expect(reported).toEqual(CLIENTS.map(({ values }) => values.slice(0, 4)));
});

test("text in a client's own encoding reaches the server and comes back in it", async () => {
  const client = await login({ client_encoding: "LATIN1" });
  client.send(new Uint8Array(Buffer.from("Q\0\0\0\u0014select 'ä', 1;;\0", "latin1")));
  const { frame } = await client.message().then(() => client.message());
  await client.untilReady();
  client.terminate();

  expect([...frame.subarray(7, 12)]).toEqual([0, 0, 0, 1, 0xe4]);
});

test("SET of a client stays with it, and goes when the client goes", async () => {
  const first = await login({ application_name: "first" });
  await first.query("set statement_timeout = '3s'");
  const own = await first.query(SHOW);
  first.terminate();
  await first.ended();
  const second = await login();
  const { rows } = await second.query(SHOW);
  second.terminate();

  expect([own.rows[0]?.[0], own.rows[0]?.[5]]).toEqual(["first", "3s"]);
  expect(rows).toEqual([PLAIN]);
});

test("SET LOCAL ends with its transaction", async () => {
  const client = await login({ options: "-c statement_timeout=12s" });
  await client.query("begin; set local statement_timeout = '1s'");
  const inside = await client.query(SHOW);
  await client.query("commit");
  const outside = await client.query(SHOW_ON_PRIMARY);
  client.terminate();

  expect([inside.rows[0]?.[5], outside.rows[0]?.[5]]).toEqual(["1s", "12s"]);
});

test("a rollback takes nothing of the startup parameters away", async () => {
  const client = await login({ options: "-c statement_timeout=12s" });
  const other = await login();
  await other.query(SHOW_ON_PRIMARY);
  client.send(parse("", "begin"), bind(""), execute(), sync);
  await client.untilReady();
  await client.query("select 1/0");
  await client.query("rollback");
  const mine = await client.query(SHOW_ON_PRIMARY);
  const others = await other.query(SHOW_ON_PRIMARY);
  client.terminate();
  other.terminate();

  expect([mine.rows[0]?.[5], others.rows[0]?.[5]]).toEqual(["12s", "0"]);
});

test("a profile's own parameters hold unless a client asks for others", async () => {
  const plain = await login({}, "app_user");
  const asking = await login({ options: "-c statement_timeout=5s" }, "app_user");
  const answers = [
    await plain.query(SHOW_ON_PRIMARY),
    await asking.query(SHOW_ON_PRIMARY),
    await plain.query(SHOW_ON_PRIMARY),
  ];
  plain.terminate();
  asking.terminate();

  expect(answers.map(({ rows }) => rows[0]?.[5])).toEqual(["41s", "5s", "41s"]);
});

test("two principals use named statements of one name, and none of our own names exists", async () => {
  const ann = await principal("ann");
  const bob = await principal("bob");
  ann.send(parse("mine", "select 'ann ' || $1"), sync);
  bob.send(parse("mine", "select 'bob ' || $1"), sync);
  await ann.untilReady();
  await bob.untilReady();
  const answers: unknown[] = [];
  for (const [client, value] of [
    [ann, "1"],
    [bob, "2"],
    [ann, "3"],
    [ann, "4"],
    [bob, "5"],
  ] as const) {
    client.send(bind("mine", value), execute(), sync);
    const { rows, errors } = await client.untilReady();
    answers.push([rows, errors]);
  }
  const names = await bob.query("select name from pg_prepared_statements");
  const namesOnPrimary = await ann.query("select name, txid_current() from pg_prepared_statements");
  ann.terminate();
  bob.terminate();

  expect(answers).toEqual([
    [[["ann 1"]], []],
    [[["bob 2"]], []],
    [[["ann 3"]], []],
    [[["ann 4"]], []],
    [[["bob 5"]], []],
  ]);
  const left = [...names.rows, ...namesOnPrimary.rows].map((row) => row[0]);
  expect(left.filter((name) => name?.startsWith("wg_") || name?.startsWith("_walgate"))).toEqual(
    [],
  );
});

test("nothing of one principal's session is seen by another, not even what a function has set", async () => {
  const ann = await principal("ann");
  const bob = await principal("bob");
  // A read to the classifier's eye would keep the connection: every way to leave something behind.
  await ann.query("select set_config('app.secret', 'of ann', false)");
  await ann.query("create temp table mine as select 'of ann' as secret");
  await ann.query("prepare mine as select 'of ann'");
  ann.terminate();
  await ann.ended();
  const seen = await bob.query(
    `select current_setting('app.secret', true), to_regclass('pg_temp.mine'),
     (select count(*) from pg_prepared_statements), txid_current() is null`,
  );
  bob.terminate();

  expect(seen.rows[0]?.map((value) => (value === "" ? null : value))).toEqual([
    null,
    null,
    "0",
    "f",
  ]);
});
