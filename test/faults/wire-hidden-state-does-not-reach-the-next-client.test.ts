// State that a client leaves in ways that no text of its shows plainly, on a pool of one connection: the next client must not meet it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
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

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster, { sections: { pool: "default_pool_size = 1" } });
  await cluster.primary.sql(`
    create schema one authorization app; create schema two authorization app;
    create table one.t (a int); create table two.t (a text, b text);
    alter table one.t owner to app; alter table two.t owner to app;
    create function forget() returns int language plpgsql as
      $$ begin execute 'deallocate all'; return 1; end $$;
    grant execute on function forget() to app`);
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

function login(parameters: Readonly<Record<string, string>> = {}): Promise<RawClient> {
  const { port } = gateway.postgres;
  return RawClient.login({ port, user: "app", password: cluster.passwords.app, parameters });
}

async function searchPathOf(client: RawClient): Promise<unknown> {
  return (await client.query("select current_setting('search_path')")).rows[0]?.[0];
}

const PLAIN = '"$user", public';
/** set_config(text, text, boolean). */
const SET_CONFIG_OID = 2078;

function argument(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  return new Uint8Array([...int32(bytes.length), ...bytes]);
}

test("a setting that was made by a fast-path function call", async () => {
  const first = await login();
  const call = [int32(SET_CONFIG_OID), 0, 0, 0, 3];
  first.send(
    frontendFrame("F", ...call, argument("search_path"), argument("one"), argument("f"), 0, 0),
  );
  await first.untilReady();
  expect(await searchPathOf(first)).toBe("one");
  first.terminate();

  expect(await searchPathOf(await login())).toBe(PLAIN);
});

test("a setting that was made by an UPDATE of pg_settings", async () => {
  const first = await login();
  await first.query("update pg_settings set setting = 'one' where name = 'search_path'");
  expect(await searchPathOf(first)).toBe("one");
  first.terminate();

  expect(await searchPathOf(await login())).toBe(PLAIN);
});

test("startup parameters that PostgreSQL can't reset are refused, and others with odd names do not stay", async () => {
  const seeded = await login({ options: "-c seed=0.5" }).then(() => "accepted", String);
  expect(seeded).toContain("0A000");
  const first = await login({ "user.x": "1", search_path: "one" });
  expect(await searchPathOf(first)).toBe("one");
  first.terminate();

  const second = await login();
  expect(await searchPathOf(second)).toBe(PLAIN);
  const left = await second.query("select current_setting('user.x', true)");
  expect(left.rows[0]?.[0] ?? "").toBe("");
});

test("RESET ALL leads back to the client's own startup parameters", async () => {
  const client = await login({ search_path: "one" });

  await client.query("set search_path = two; reset all");

  expect(await searchPathOf(client)).toBe("one");
  client.terminate();
});

test("one text under two search paths is two statements", async () => {
  const [one, two] = [await login({ search_path: "one" }), await login({ search_path: "two" })];
  for (const client of [one, two, one, two]) {
    client.send(
      parse("s", "select * from t"),
      bind("s"),
      execute(),
      sync,
      frontendFrame("C", "Ss"),
      sync,
    );
    const answers = [await client.untilReady(), await client.untilReady()];
    expect(answers.flatMap(({ errors }) => errors)).toEqual([]);
  }
  one.terminate();
  two.terminate();
});

/** PostgreSQL folds the literal when it parses, with the TimeZone of the session that does. */
const FOLDED = "select '2024-01-02 00:00'::timestamptz at time zone 'UTC'";
const IN_UTC = "2024-01-02 00:00:00";
const IN_TOKYO = "2024-01-01 15:00:00";

async function folded(client: RawClient): Promise<unknown> {
  client.send(parse("z", FOLDED), bind("z"), execute(), sync);
  const { rows } = await client.untilReady();
  client.send(frontendFrame("C", "Sz"), sync);
  await client.untilReady();
  return rows[0]?.[0];
}

test("a literal that another session's settings were folded into", async () => {
  const tokyo = await login({ TimeZone: "Asia/Tokyo" });
  const utc = await login({ TimeZone: "UTC" });
  const inTransaction = await login({ TimeZone: "UTC" });

  const seen = [await folded(tokyo), await folded(utc), await folded(tokyo)];
  await inTransaction.query("begin; set local timezone = 'Asia/Tokyo'");
  seen.push(await folded(inTransaction));
  await inTransaction.query("commit");
  seen.push(await folded(utc));
  await utc.query("set timezone = 'Asia/Tokyo'");
  seen.push(await folded(utc));
  await utc.query("set timezone = 'UTC'");
  seen.push(await folded(utc));

  expect(seen).toEqual([IN_TOKYO, IN_UTC, IN_TOKYO, IN_TOKYO, IN_UTC, IN_TOKYO, IN_UTC]);
  for (const client of [tokyo, utc, inTransaction]) client.terminate();
});

test("statements that a function has deallocated cost one error, not one for ever", async () => {
  const client = await login();
  const run = async (): Promise<readonly string[]> => {
    client.send(parse("f", "select 41 + $1::int"), bind("f", "1"), execute(), sync);
    const { errors } = await client.untilReady();
    client.send(frontendFrame("C", "Sf"), sync);
    await client.untilReady();
    return errors;
  };
  expect(await run()).toEqual([]);
  await client.query("select forget()");

  const outcomes = [await run(), await run(), await run()];

  expect(outcomes.slice(1)).toEqual([[], []]);
  client.terminate();
});

test("a seed that another principal of an untrusted profile has set", async () => {
  const { port } = gateway.postgres;
  const principal = async (sub: string): Promise<RawClient> => {
    const password = await gateway.token({ role: "authenticated", sub });
    return RawClient.login({ port, user: "anyone", password });
  };
  const drawn = async (client: RawClient): Promise<unknown> =>
    (await client.query("select random()")).rows[0]?.[0];
  const alice = await principal("alice");
  await alice.query("select setseed(0.5)");
  const known = await drawn(alice);
  await alice.query("select setseed(0.5)");
  alice.terminate();

  const seen = await drawn(await principal("bob"));

  expect(seen).not.toBe(known);
});
