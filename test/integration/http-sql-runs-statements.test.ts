// POST /sql on real PostgreSQL: single statements and batches, in every form of answer that a caller may ask for.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { type Answer, eventually, post, postSql } from "./http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  await cluster.primary.sql(
    "create table item (id int primary key deferrable, name text not null);" +
      "alter table item owner to app",
  );
  gateway = await testGateway(cluster);
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

const sql = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  postSql(gateway, cluster, body, headers);

const names = async (): Promise<unknown> => {
  const { body } = await sql({ query: "select id, name from item order by id" });
  return typeof body === "object" && body !== null && "rows" in body ? body.rows : body;
};

describe("a single statement", () => {
  test("answers with exactly the driver's keys, and with headers that caches and callers need", async () => {
    const { status, headers, body } = await sql({
      query: "select $1::int as n, $2::text as t, null as nothing",
      params: ["7", "é\n"],
    });

    const field = (name: string, dataTypeID: number, dataTypeSize: number) => ({
      name,
      tableID: 0,
      columnID: 0,
      dataTypeID,
      dataTypeSize,
      dataTypeModifier: -1,
      format: "text",
    });
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        fields: [field("n", 23, 4), field("t", 25, -1), field("nothing", 25, -1)],
        rows: [["7", "é\n", null]],
        command: "SELECT",
        rowCount: 1,
        rowAsArray: true,
      },
    });
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("neon-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get("walgate-served-by")).toBe("primary");
  });

  test("that returns no rows still has fields and rows", async () => {
    const answers = [
      ["create temp table x (a int)", "CREATE", null],
      ["set timezone = 'UTC'", "SET", null],
      ["insert into item values (100, 'a'), (101, 'b')", "INSERT", 2],
      ["update item set name = 'c' where id = 100", "UPDATE", 1],
      ["delete from item where id >= 100", "DELETE", 2],
      ["", "", null],
    ] as const;
    for (const [query, command, rowCount] of answers) {
      const { status, body } = await sql({ query });

      expect({ status, body }).toEqual({
        status: 200,
        body: { fields: [], rows: [], command, rowCount, rowAsArray: true },
      });
    }
  });

  test("is decoded into objects when neither raw text nor arrays are asked for", async () => {
    const text =
      '{"query":"select 1 as i, 2::int8 as b, 1.5::float8 as f, \'NaN\'::float8 as n, true as t, ' +
      "$1::jsonb as j, array[1,null]::int4[] as a, array[box '((1,1),(0,0))'] as x, 3 as i\"," +
      '"params":[{"big":9007199254740993}]}';

    const response = await fetch(`${gateway.http}/sql`, {
      method: "POST",
      body: text,
      headers: { Authorization: `Bearer ${await gateway.token()}` },
    });

    expect(await response.text()).toContain(
      '"rows":[{"i":3,"b":"2","f":1.5,"n":"NaN","t":true,"j":{"big": 9007199254740993},"a":[1,null],"x":"{(1,1),(0,0)}"}]',
    );
  });

  test("takes numbers, arrays and objects of JSON without losing a digit", async () => {
    const { body } = await sql(
      '{"query":"select $1::numeric, $2::int8[], $3::text[], $4::jsonb[], $5::bool, $6::text",' +
        '"params":[12345678901234567890.10,[1,null,9007199254740993],["a\\"b","c\\\\\\n"],[{"k":"v\\"w"}],true,null]}',
    );

    expect(body).toMatchObject({
      rows: [
        [
          "12345678901234567890.10",
          "{1,NULL,9007199254740993}",
          '{"a\\"b","c\\\\\n"}',
          '{"{\\"k\\": \\"v\\\\\\"w\\"}"}',
          "t",
          null,
        ],
      ],
    });
  });

  test("that fails answers 400 with PostgreSQL's own fields", async () => {
    await sql({ query: "insert into item values (1, 'one')" });

    const { status, body } = await sql({ query: "insert into item values (1, 'again')" });

    expect({ status, body }).toMatchObject({
      status: 400,
      body: {
        message: 'duplicate key value violates unique constraint "item_pkey"',
        code: "23505",
        severity: "ERROR",
        detail: "Key (id)=(1) already exists.",
        schema: "public",
        table: "item",
        constraint: "item_pkey",
        hint: null,
        position: null,
        routine: "_bt_check_unique",
      },
    });
    expect(Object.keys(Object(body))).toHaveLength(17);
    await sql({ query: "delete from item" });
  });

  test("with a wrong number of parameters, or with two statements, is refused in PostgreSQL's words", async () => {
    const count = await sql({ query: "select $1::int, $2::int", params: ["1"] });
    const two = await sql({ query: "select 1; select 2" });

    expect(count.body).toMatchObject({
      code: "08P01",
      message: 'bind message supplies 1 parameters, but prepared statement "" requires 2',
    });
    expect(two.body).toMatchObject({
      code: "42601",
      message: "cannot insert multiple commands into a prepared statement",
    });
  });

  test("of more than 64 KB, and with parameters of more than that, runs", async () => {
    const long = "x".repeat(200_000);

    const inText = await sql({ query: `select length('${long}')` });
    const inParameter = await sql({ query: "select $1::text", params: [long] });

    expect(inText.body).toMatchObject({ rows: [["200000"]] });
    expect(inParameter.body).toMatchObject({ rows: [[long]] });
  });

  test("that begins a transaction leaves nothing for the next request, and does not wait", async () => {
    const startedAt = performance.now();
    expect(await sql({ query: "begin" })).toMatchObject({
      status: 200,
      body: { command: "BEGIN" },
    });
    expect(performance.now() - startedAt).toBeLessThan(1_500);

    await eventually(async () => {
      const open = await cluster.primary.sql(
        "select 1 from pg_stat_activity where usename = 'app' and state like 'idle in%'",
      );
      return open.length === 0;
    });
  });

  test("that sets something leaves nothing for the next request", async () => {
    await sql({ query: "set search_path = pg_catalog, nowhere" });
    await sql({ query: "select set_config('search_path', 'nowhere', false)" });

    expect((await sql({ query: "show search_path" })).body).not.toMatchObject({
      rows: [["nowhere"]],
    });
  });

  test("that copies is refused with 0A000 before or after PostgreSQL has begun to", async () => {
    const stated = await sql({ query: "copy item to stdout" });
    // The text is too long to be read, so that only the answer betrays it.
    const hidden = await sql({ query: `copy item from stdin /* ${"x".repeat(70_000)} */` });

    expect([stated.status, stated.body]).toMatchObject([400, { code: "0A000" }]);
    expect([hidden.status, hidden.body]).toMatchObject([400, { code: "0A000" }]);
    expect((await sql({ query: "select 1" })).status).toBe(200);
  });
});

describe("a batch", () => {
  test("runs in one transaction and answers each statement", async () => {
    const { status, headers, body } = await sql(
      {
        queries: [
          { query: "insert into item values (1, $1)", params: ["one"] },
          { query: "select name, current_setting('transaction_isolation') from item" },
        ],
      },
      { "Neon-Batch-Isolation-Level": "Serializable" },
    );

    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        results: [
          { command: "INSERT", rowCount: 1, rows: [] },
          { command: "SELECT", rowCount: 1, rows: [["one", "serializable"]] },
        ],
      },
    });
    expect(headers.get("neon-batch-isolation-level")).toBe("Serializable");
    expect(await names()).toEqual([["1", "one"]]);
  });

  test("without queries is answered without a server", async () => {
    const { status, headers, body } = await sql({ queries: [] });

    expect({ status, body }).toEqual({ status: 200, body: { results: [] } });
    expect(headers.has("walgate-served-by")).toBe(false);
  });

  test("that fails in the middle leaves nothing, and its first error is the answer", async () => {
    const { status, body } = await sql({
      queries: [
        { query: "insert into item values (2, 'two')" },
        { query: "select 1/0" },
        { query: "nonsense" },
      ],
    });

    expect({ status, body }).toMatchObject({
      status: 400,
      body: { code: "22012", message: "division by zero" },
    });
    expect(await names()).toEqual([["1", "one"]]);
  });

  test("that fails at its commit is an error", async () => {
    const { status, body } = await sql({
      queries: [
        { query: "set constraints all deferred" },
        { query: "insert into item values (1, 'twice')" },
      ],
    });

    expect({ status, body }).toMatchObject({ status: 400, body: { code: "23505" } });
    expect(await names()).toEqual([["1", "one"]]);
  });

  test("is read-only and deferrable when asked", async () => {
    const headers = { "Neon-Batch-Read-Only": "true", "Neon-Batch-Deferrable": "true" };
    const write = await sql({ queries: [{ query: "insert into item values (3, 'x')" }] }, headers);
    const read = await sql(
      { queries: [{ query: "show transaction_deferrable" }] },
      { ...headers, "Neon-Batch-Isolation-Level": "Serializable" },
    );

    expect(write.body).toMatchObject({ code: "25006" });
    expect(read.body).toMatchObject({ results: [{ rows: [["on"]] }] });
    expect(read.headers.get("neon-batch-read-only")).toBe("true");
    expect(read.headers.get("neon-batch-deferrable")).toBe("true");
  });

  test("that would end its own transaction is refused before anything runs", async () => {
    const { status, body } = await sql({
      queries: [{ query: "insert into item values (4, 'x')" }, { query: "commit" }],
    });

    expect({ status, body }).toMatchObject({ status: 400, body: { code: "2D000" } });
    expect(await names()).toEqual([["1", "one"]]);
  });

  test("may use savepoints", async () => {
    const { status } = await sql({
      queries: [
        { query: "savepoint a" },
        { query: "insert into item values (5, 'x')" },
        { query: "rollback to a" },
      ],
    });

    expect(status).toBe(200);
    expect(await names()).toEqual([["1", "one"]]);
  });

  test("whose hidden COMMIT could not be read beforehand is an error afterwards", async () => {
    const { status, body } = await sql({
      queries: [{ query: `commit /* ${"x".repeat(70_000)} */` }],
    });

    expect({ status, body }).toMatchObject({ status: 400, body: { code: "2D000" } });
  });

  test("of many statements runs, and one of too many is refused", async () => {
    const queries = (count: number) => Array.from({ length: count }, () => ({ query: "select 1" }));

    const all = await post(
      `${gateway.http}/sql`,
      { queries: queries(1_000) },
      {
        Authorization: `Bearer ${await gateway.token()}`,
      },
    );
    const more = await sql({ queries: queries(1_001) });

    expect(all.status).toBe(200);
    expect(more).toMatchObject({ status: 400, body: { code: "54000" } });
  });
});
