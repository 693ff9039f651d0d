// Logins over the wire door that are refused: with which SQLSTATE, and that neither the answer nor the log holds what was sent.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { RawClient, errorText, frontendFrame, sendCancel } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 1" },
  });
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

interface Refusal {
  readonly error: string;
  readonly authentications: readonly number[];
}

async function refusalOf(
  user: string,
  password: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<Refusal> {
  const { port } = gateway.postgres;
  const client = await RawClient.open(port);
  const frame = await client.authenticate({ port, user, password, parameters });
  if (frame === undefined) throw new Error("the login was accepted");
  await client.ended();
  return { error: errorText(frame), authentications: client.authentications };
}

const SASL = 10;
const SASL_CONTINUE = 11;
const CLEARTEXT = 3;

test("a wrong password is refused with 28P01, and the log does not hold it", async () => {
  const refusal = await refusalOf("app", "not-the-password");

  expect(refusal).toEqual({
    error: '28P01 password authentication failed for user "app"',
    authentications: [SASL, SASL_CONTINUE],
  });
  expect(gateway.log.join("\n")).not.toContain("not-the-password");
});

test("an unknown user is refused as a wrong password is", async () => {
  const refusal = await refusalOf("nobody", "whatever-it-was");

  expect(refusal.error).toBe('28P01 password authentication failed for user "nobody"');
  expect(gateway.log.join("\n")).not.toContain("whatever-it-was");
});

test("an expired, a forged and a foreign token are refused with 28000, and shown nowhere", async () => {
  const good = await gateway.token();
  const [header, payload, signature = ""] = good.split(".");
  const tokens = [
    await gateway.token({}, -60),
    `${header}.${payload}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`,
    `${header}.${Buffer.from(`{"role":"service","sub":"x"}`).toString("base64url")}.${signature}`,
    await gateway.token({ role: "nobody's" }),
  ];
  const refusals = await Promise.all(tokens.map((token) => refusalOf("anyone", token)));
  const said = `${refusals.map(({ error }) => error).join("\n")}\n${gateway.log.join("\n")}`;

  expect(refusals.map(({ error }) => error.slice(0, 5))).toEqual(tokens.map(() => "28000"));
  expect(refusals.map(({ authentications }) => authentications)).toEqual(
    tokens.map(() => [CLEARTEXT]),
  );
  for (const token of tokens) {
    for (const part of token.split(".")) expect(said).not.toContain(part);
  }
});

test.each([
  ["TimeZone", "Mars/Olympus"],
  ["DateStyle", "sideways"],
  ["client_encoding", "no such encoding"],
  ["no_such_setting", "1"],
  ["options", "-c statement_timeout=soon"],
  ["is_superuser", "on"],
  ["session_authorization", "postgres"],
  ["role", "postgres"],
])("a startup parameter %s = %p fails the login as it does at PostgreSQL", async (name, value) => {
  const parameters = { [name]: value };
  const refusal = await refusalOf("app", cluster.passwords.app, parameters);
  const client = await RawClient.open(cluster.primary.port);
  const direct = await client.authenticate({
    port: cluster.primary.port,
    password: cluster.passwords.app,
    parameters,
  });
  client.destroy();

  expect(refusal.error.slice(0, 5)).toBe(direct === undefined ? "" : errorText(direct).slice(0, 5));
});

test("a refused parameter changes nothing for the clients that follow", async () => {
  await refusalOf("app", cluster.passwords.app, {
    application_name: "refused",
    TimeZone: "Mars/Olympus",
  });
  const { port } = gateway.postgres;
  const client = await RawClient.login({ port, password: cluster.passwords.app });
  const { rows } = await client.query(
    "select current_setting('application_name'), current_setting('TimeZone')",
  );
  client.terminate();

  expect(rows).toEqual([["", "UTC"]]);
});

test("one client more than max_client_conn is refused with 53300 once it wants to log in, and may cancel", async () => {
  await using small = await testGateway(cluster, { sections: { gateway: "max_client_conn = 2" } });
  const { port } = small.postgres;
  const login = { port, password: cluster.passwords.app };
  const first = await RawClient.login(login);
  const second = await RawClient.login(login);
  const third = await RawClient.open(port);
  const refused = await third.authenticate(login);
  await third.ended();

  first.send(frontendFrame("Q", "select pg_sleep(30)"));
  await pollUntil(
    async () =>
      (await cluster.primary.sql("select from pg_stat_activity where query ~ '^select pg_sleep'"))
        .length === 1,
    5_000,
    "the sleep runs",
  );
  await sendCancel(port, first.processId, first.secretKey);
  const canceled = await first.untilReady();
  second.terminate();
  await second.ended();
  await pollUntil(() => small.gateway.context.clients.clients === 1, 5_000, "one client is left");
  const fourth = await RawClient.login(login);
  const { rows } = await fourth.query("select 'in'");

  expect(refused === undefined ? "" : errorText(refused)).toBe(
    "53300 no more connections allowed (max_client_conn)",
  );
  expect(canceled.errors).toEqual(["57014"]);
  expect(rows).toEqual([["in"]]);
});
