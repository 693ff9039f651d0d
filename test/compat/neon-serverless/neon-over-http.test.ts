// The unmodified serverless driver over HTTP: `neon()` with the one setting that it takes to point it here.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { NeonDbError, neon, neonConfig } from "@neondatabase/serverless";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;
let url: string;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  await cluster.primary.sql(
    "create table item (id int primary key deferrable initially deferred, at timestamptz, data jsonb, tags text[], raw bytea);" +
      "alter table item owner to app",
  );
  gateway = await testGateway(cluster);
  neonConfig.fetchEndpoint = `${gateway.http}/sql`;
  url = `postgresql://app:${encodeURIComponent(cluster.passwords.app)}@db.example/app?sslmode=require&channel_binding=require`;
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

async function failure(work: Promise<unknown>): Promise<NeonDbError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof NeonDbError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

describe("neon()", () => {
  test("runs a template with parameters of every kind and decodes what comes back", async () => {
    const sql = neon(url);
    const at = new Date("2026-01-02T03:04:05.678Z");
    const tags = ['a"b', "c,d", "NULL", "é"];
    const raw = Buffer.from([0, 1, 255]);

    await sql`insert into item values (${1}, ${at}, ${{ a: [1, "x"] }}, ${tags}, ${raw})`;
    const rows =
      await sql`select *, ${true} as yes, ${null}::int as nothing, 9007199254740993::int8 as big from item`;

    expect(rows).toEqual([
      {
        id: 1,
        at,
        data: { a: [1, "x"] },
        tags,
        raw,
        yes: "true",
        nothing: null,
        big: "9007199254740993",
      },
    ]);
    await sql`delete from item`;
  });

  test("answers query() in full, and as arrays", async () => {
    const sql = neon(url, { fullResults: true, arrayMode: true });

    const result = await sql.query("select $1::int as a, $2::text as a", [1, "x"]);

    expect(result).toMatchObject({
      command: "SELECT",
      rowCount: 1,
      rowAsArray: true,
      rows: [[1, "x"]],
      fields: [
        { name: "a", dataTypeID: 23 },
        { name: "a", dataTypeID: 25 },
      ],
    });
    expect(await sql.query("set local timezone = 'UTC'")).toMatchObject({
      command: "SET",
      rowCount: null,
      rows: [],
      fields: [],
    });
  });

  test("runs a transaction with its options", async () => {
    const sql = neon(url);

    const results = await sql.transaction(
      [
        sql`select current_setting('transaction_isolation') as level`,
        sql`show transaction_read_only`,
      ],
      { isolationLevel: "RepeatableRead", readOnly: true, deferrable: false },
    );

    expect(results).toEqual([[{ level: "repeatable read" }], [{ transaction_read_only: "on" }]]);
    expect(await sql.transaction([])).toEqual([]);
  });

  test("rejects a transaction that fails in the middle or at its commit, and leaves nothing", async () => {
    const sql = neon(url);

    const middle = await failure(
      sql.transaction([sql`insert into item (id) values (1)`, sql`select 1/0`]),
    );
    const commit = await failure(
      sql.transaction([
        sql`insert into item (id) values (1)`,
        sql`insert into item (id) values (1)`,
      ]),
    );

    expect([middle.code, commit.code]).toEqual(["22012", "23505"]);
    expect(await sql`select * from item`).toEqual([]);
  });

  test("rejects with PostgreSQL's fields", async () => {
    const sql = neon(url);
    await sql`insert into item (id) values (7)`;

    const duplicate = await failure(sql`insert into item (id) values (7)`);
    const syntax = await failure(sql.query("select * frm item"));

    expect(Object.fromEntries(Object.entries(duplicate))).toMatchObject({
      code: "23505",
      severity: "ERROR",
      detail: "Key (id)=(7) already exists.",
      schema: "public",
      table: "item",
      constraint: "item_pkey",
    });
    expect(syntax).toMatchObject({
      message: 'syntax error at or near "frm"',
      code: "42601",
      position: "10",
    });
    await sql`delete from item`;
  });

  test("with a wrong password rejects with a code and PostgreSQL's words", async () => {
    const error = await failure(neon("postgresql://app:wrong@db.example/app")`select 1`);

    expect(error).toMatchObject({
      code: "28P01",
      severity: "FATAL",
      message: 'password authentication failed for user "app"',
    });
  });

  test("takes a token in place of user and password", async () => {
    const sql = neon("postgresql://anybody@db.example/app", { authToken: () => gateway.token() });

    expect(await sql`select current_user`).toEqual([{ current_user: "app" }]);
    const error = await failure(
      neon("postgresql://anybody@db.example/app", { authToken: "no token" })`select 1`,
    );
    expect(error.code).toBe("28000");
  });

  test("rejects a query that its caller aborts, which ends in PostgreSQL", async () => {
    const controller = new AbortController();
    const sql = neon(url, { fetchOptions: { signal: controller.signal } });
    const active = async (): Promise<number> =>
      (
        await cluster.primary.sql(
          "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
        )
      ).length;
    const outcome = sql`select pg_sleep(60)`.then(
      () => "done",
      () => "rejected",
    );
    const deadline = Date.now() + 10_000;
    while ((await active()) === 0 && Date.now() < deadline) await Bun.sleep(10);

    controller.abort();

    expect(await outcome).toBe("rejected");
    while ((await active()) > 0 && Date.now() < deadline) await Bun.sleep(10);
    expect(await active()).toBe(0);
  });
});

test("the driver works on Node.js too", async () => {
  const program = `
    const { neon, neonConfig } = require("@neondatabase/serverless");
    neonConfig.fetchEndpoint = process.env.ENDPOINT;
    const sql = neon(process.env.URL);
    (async () => {
      const rows = await sql\`select \${1}::int as one\`;
      const batch = await sql.transaction([sql\`select 2 as two\`]);
      const code = await sql\`select 1/0\`.catch((error) => error.code);
      console.log(JSON.stringify([rows, batch, code]));
    })();
  `;
  const node = Bun.spawn(["node", "-e", program], {
    cwd: import.meta.dir,
    env: { PATH: process.env["PATH"] ?? "", ENDPOINT: `${gateway.http}/sql`, URL: url },
    stdout: "pipe",
    stderr: "pipe",
  });

  const [output, errors, code] = await Promise.all([
    new Response(node.stdout).text(),
    new Response(node.stderr).text(),
    node.exited,
  ]);

  expect({ errors, code }).toEqual({ errors: "", code: 0 });
  expect(JSON.parse(output)).toEqual([[{ one: 1 }], [[{ two: 2 }]], "22012"]);
}, 20_000);
