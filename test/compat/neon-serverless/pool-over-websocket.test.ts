// The unmodified serverless driver over WebSocket: `Pool` and `Client`, in each way of beginning and of framing that it has.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { Client, Pool, neonConfig } from "@neondatabase/serverless";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;
let connectionString: string;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  await cluster.primary.sql(
    "create table item (id int primary key); alter table item owner to app",
  );
  gateway = await testGateway(cluster);
  const { host } = new URL(gateway.http);
  neonConfig.wsProxy = () => `${host}/v2`;
  neonConfig.useSecureWebSocket = false;
  connectionString = `postgresql://app:${encodeURIComponent(cluster.passwords.app)}@db.example/app`;
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});
afterEach(() => {
  neonConfig.pipelineConnect = "password";
  neonConfig.coalesceWrites = true;
});

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error instanceof Error && "code" in error ? error.code : error;
  }
  return "it did not fail";
}

for (const pipelineConnect of ["password", false] as const) {
  for (const coalesceWrites of [true, false]) {
    describe(`with pipelineConnect ${pipelineConnect} and coalesceWrites ${coalesceWrites}`, () => {
      const open = async (): Promise<Client> => {
        neonConfig.pipelineConnect = pipelineConnect;
        neonConfig.coalesceWrites = coalesceWrites;
        const client = new Client({ connectionString });
        await client.connect();
        return client;
      };

      test("a client runs simple, parametrised and named queries, and its end settles", async () => {
        const client = await open();

        expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
        const result = await client.query(
          "select $1::int8 as big, $2::jsonb as data, $3::bytea as raw",
          ["9007199254740993", { a: 1 }, Buffer.from([1, 255])],
        );
        expect(result.rows).toEqual([
          { big: "9007199254740993", data: { a: 1 }, raw: Buffer.from([1, 255]) },
        ]);
        for (const value of [1, 2]) {
          const named = { name: "twice", text: "select $1::int * 2 as n", values: [value] };
          expect((await client.query(named)).rows).toEqual([{ n: value * 2 }]);
        }
        await client.end();
      });

      test("a transaction commits, rolls back, and keeps its savepoints", async () => {
        const client = await open();
        await client.query("begin");
        await client.query("insert into item values (1)");
        await client.query("savepoint s");
        expect(await codeOf(client.query("insert into item values (1)"))).toBe("23505");
        await client.query("rollback to s");
        await client.query("commit");
        await client.query("begin");
        await client.query("delete from item");
        await client.query("rollback");

        expect((await client.query("select id from item")).rows).toEqual([{ id: 1 }]);
        await client.query("delete from item");
        await client.end();
      });

      test("a wrong password rejects the first query with 28P01", async () => {
        neonConfig.pipelineConnect = pipelineConnect;
        neonConfig.coalesceWrites = coalesceWrites;
        const client = new Client({ connectionString: "postgresql://app:wrong@db.example/app" });
        client.on("error", () => {});

        const work = client.connect().then(() => client.query("select 1"));

        expect(await codeOf(work)).toBe("28P01");
      });
    });
  }
}

test("a pool serves many queries at a time, and its end settles", async () => {
  const pool = new Pool({ connectionString, max: 4 });

  const results = await Promise.all(
    Array.from({ length: 40 }, (_, index) => pool.query("select $1::int as n", [index])),
  );

  expect(results.map(({ rows }) => rows)).toEqual(
    Array.from({ length: 40 }, (_, index) => [{ n: index }]),
  );
  await pool.end();
});

test("settings of the connection string are in force", async () => {
  const client = new Client({
    connectionString: `${connectionString}?application_name=mine&statement_timeout=2345`,
  });
  await client.connect();

  const { rows } = await client.query(
    "select current_setting('application_name') as name, current_setting('statement_timeout') as timeout",
  );

  expect(rows).toEqual([{ name: "mine", timeout: "2345ms" }]);
  await client.end();
});

test("a result and a parameter of several megabytes pass whole", async () => {
  const client = new Client({ connectionString });
  await client.connect();
  const long = "x".repeat(3_000_000);

  const { rows } = await client.query("select $1::text as text", [long]);

  expect(rows).toEqual([{ text: long }]);
  await client.end();
});
