// What comes often by HTTP is prepared on the server's connections, and nobody can tell but by the speed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { type Answer, post, postQuery, postSql } from "./http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;
/** Prepares nothing. */
let plain: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  await cluster.primary.sql(
    "create table item (id int primary key, name text);" +
      "insert into item values (1, 'one'), (2, 'two'); alter table item owner to app;" +
      "grant select on item to app_user",
  );
  const pool = "default_pool_size = 2";
  gateway = await testGateway(cluster, { sections: { pool, http: "prepare_threshold = 3" } });
  plain = await testGateway(cluster, { sections: { pool, http: "prepare_threshold = 0" } });
});
afterAll(async () => {
  await gateway.stop();
  await plain.stop();
  await cluster.stop();
});

const sql = (query: string, params: readonly unknown[] = [], to = gateway): Promise<Answer> =>
  postSql(to, cluster, { query, params });

/** Prepared statements that the connection which serves this has, and how often each was run. */
const PREPARED =
  "select statement, generic_plans + custom_plans from pg_prepared_statements where name like 'wg%' order by 1";

async function rows(answer: Promise<Answer>): Promise<unknown> {
  const { body } = await answer;
  return typeof body === "object" && body !== null && "rows" in body ? body.rows : body;
}

async function times<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let i = 0; i < count; i++) results.push(await work());
  return results;
}

test("a query that comes for the third time is prepared, once for all callers", async () => {
  const query = "select name from item where id = $1";
  await times(2, () => sql(query, [1]));
  expect(await rows(sql(PREPARED))).toEqual([]);

  expect(await rows(sql(query, [1]))).toEqual([["one"]]);
  expect(await rows(postQuery(gateway, query, ["2"]))).toEqual([["two"]]);
  expect(await rows(sql(PREPARED))).toEqual([[query, "2"]]);
});

test("with prepare_threshold = 0 nothing is", async () => {
  await times(10, () => sql("select name from item where id = $1", [1], plain));

  expect(await rows(sql(PREPARED, [], plain))).toEqual([]);
});

test("a caller with raw SQL that is not trusted is served as before", async () => {
  const authorization = `Bearer ${await gateway.token({ role: "authenticated" })}`;
  const query = "select name from item where id = $1";
  const ask = (text: string, params: unknown[]): Promise<Answer> =>
    post(`${gateway.http}/v1/query`, { query: text, params }, { Authorization: authorization });
  const answers = await times(6, () => rows(ask(query, ["1"])));

  expect(answers).toEqual(answers.map(() => [["one"]]));
  expect(await rows(ask(PREPARED, []))).toEqual([]);
});

describe("a kept plan never shows", () => {
  test("when a column was added to the result", async () => {
    await cluster.primary.sql(
      "create table grows (a int); insert into grows values (1); alter table grows owner to app",
    );
    const query = "select * from grows";
    await times(5, () => sql(query));
    await cluster.primary.sql("alter table grows add column b int default 2");
    // More often than there are connections, each of which has the plan.
    const answers = await times(8, () => rows(sql(query)));

    expect(answers).toEqual(answers.map(() => [["1", "2"]]));
  });

  test("when a column's type was changed", async () => {
    await cluster.primary.sql(
      "create table changes (a int); insert into changes values (1); alter table changes owner to app",
    );
    const query = "update changes set a = a returning a";
    await times(5, () => sql(query));
    await cluster.primary.sql("alter table changes alter a type text using 'text'");
    const answers = await times(8, () => rows(sql(query)));

    expect(answers).toEqual(answers.map(() => [["text"]]));
  });

  test("when a function has dropped all prepared statements unseen", async () => {
    await cluster.primary.sql(
      "create function forget() returns int language plpgsql as $$ begin execute 'deallocate all'; return 1; end $$",
    );
    const query = "select name from item where id = $1 and true";
    for (let i = 0; i < 10; i++) {
      expect(await rows(sql(query, [1]))).toEqual([["one"]]);
      expect(await rows(sql("select forget()"))).toEqual([["1"]]);
    }
  });

  test("in what an error says", async () => {
    const queries = [
      ["select 1 / $1::int", [0]],
      ["select nothing from item where id = $1", [1]],
      ["select $1::int", ["x"]],
      ["insert into item values ($1)", [1]],
      ["select 1; select 2", []],
    ] as const;
    for (const [query, params] of queries) {
      const answers = await times(6, async () => (await sql(query, params)).body);
      const { body } = await sql(query, params, plain);

      expect(answers).toEqual(answers.map(() => body));
    }
  });

  test("in the types of parameters and results", async () => {
    const queries = [
      ["select $1", [7]],
      ["select $1 || 'x', $2 + 1", ["a", "5"]],
      ["select id, name, null, $1::numeric from item order by id", ["1.50"]],
    ] as const;
    for (const [query, params] of queries) {
      const answers = await times(6, async () => (await sql(query, params)).body);
      const { body } = await sql(query, params, plain);

      expect(answers).toEqual(answers.map(() => body));
    }
  });
});

test("a batch is never prepared, and finds what single queries have prepared out of its way", async () => {
  const query = "select name from item where id = $1 and 1 = 1";
  await times(5, () => sql(query, [1]));
  const batch = { queries: [{ query, params: [1] }, { query: "select 1 / 0" }] };
  const answers = await times(6, () => postSql(gateway, cluster, batch));

  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 400));
  expect(await rows(sql(query, [2]))).toEqual([["two"]]);
});

test("two callers whose settings give a text two meanings don't share its plan", async () => {
  await cluster.primary.sql(
    "create schema other; create table other.item (id int, name text);" +
      "insert into other.item values (1, 'other'); grant all on schema other to app; grant all on other.item to app",
  );
  const query = "select name from item where id = $1 order by 1";
  const theirs = async (): Promise<unknown> => {
    const user = `postgresql://app:${encodeURIComponent(cluster.passwords.app)}@db.example/app`;
    const link = `${user}?options=-c%20search_path%3Dother`;
    return rows(
      postSql(gateway, cluster, { query, params: [1] }, { "Neon-Connection-String": link }),
    );
  };
  const answers = await times(8, async () => [await rows(sql(query, [1])), await theirs()]);

  expect(answers).toEqual(answers.map(() => [[["one"]], [["other"]]]));
});
