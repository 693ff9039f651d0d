// node-postgres as it comes from npm, through the gateway.
import { afterAll, beforeAll, expect, test } from "bun:test";
import pg from "pg";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
  gateway = await testGateway(cluster, {
    tls: true,
    sections: { "profiles.server": "default_pool_size = 2" },
  });
  await cluster.primary.sql(
    "create table items (id int primary key, note text); alter table items owner to app",
  );
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

async function withClient<T>(
  work: (client: pg.Client) => Promise<T>,
  config: pg.ClientConfig = { connectionString: gateway.url() },
): Promise<T> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The SQLSTATE of what is thrown. */
async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
  } catch (error) {
    return error instanceof pg.DatabaseError ? error.code : String(error);
  }
  return undefined;
}

test("a pool of many clients runs parameterized queries in parallel over two connections", async () => {
  const pool = new pg.Pool({ connectionString: gateway.url(), max: 10 });
  const numbers = Array.from({ length: 200 }, (_, i) => i);

  const results = await Promise.all(
    numbers.map((i) => pool.query<{ n: number }>("select $1::int as n", [i])),
  );
  await pool.end();

  expect(results.map(({ rows }) => rows[0]?.n)).toEqual(numbers);
});

test("named statements are prepared where they are missing, whichever connection serves them", async () => {
  const pool = new pg.Pool({ connectionString: gateway.url(), max: 6 });
  const query = (i: number): Promise<pg.QueryResult<{ n: number }>> =>
    pool.query({ name: `statement ${i % 5}`, text: `select $1::int + ${i % 5} as n`, values: [i] });

  const results = await Promise.all(Array.from({ length: 120 }, (_, i) => query(i)));
  await pool.end();

  expect(results.map(({ rows }) => rows[0]?.n)).toEqual(
    Array.from({ length: 120 }, (_, i) => i + (i % 5)),
  );
});

test("two clients use one name for two statements", async () => {
  await withClient((first) =>
    withClient(async (second) => {
      const answers: unknown[] = [];
      for (let i = 0; i < 3; i++) {
        answers.push((await first.query({ name: "q", text: "select 'first' as a" })).rows);
        answers.push((await second.query({ name: "q", text: "select 2 as a" })).rows);
      }

      const pair = [[{ a: "first" }], [{ a: 2 }]];
      expect(answers).toEqual([...pair, ...pair, ...pair]);
    }),
  );
});

test("a transaction is rolled back or committed, and reads its own writes afterwards", async () => {
  await withClient(async (client) => {
    await client.query("begin");
    await client.query("insert into items values ($1, $2)", [1, "gone"]);
    await client.query("rollback");
    await client.query("begin");
    await client.query("insert into items values ($1, $2)", [2, "kept"]);
    await client.query("commit");

    const { rows } = await client.query("select * from items order by id");

    expect(rows).toEqual([{ id: 2, note: "kept" }]);
  });
});

test("errors carry PostgreSQL's fields and leave the client usable, in a transaction until its end", async () => {
  await withClient(async (client) => {
    const codes = [
      await codeOf(client.query("select * from nowhere")),
      await codeOf(client.query("select $1::int", ["x"])),
      await codeOf(client.query({ name: "bad", text: "selec" })),
      await codeOf(client.query("begin")),
      await codeOf(client.query("select 1/0")),
      await codeOf(client.query("select 1")),
      await codeOf(client.query("rollback")),
    ];

    const { rows } = await client.query("select 1 as one");

    expect(codes).toEqual(["42P01", "22P02", "42601", undefined, "22012", "25P02", undefined]);
    expect(rows).toEqual([{ one: 1 }]);
  });
});

test("a listening client is told of notifications, also of its own, while others use the pool", async () => {
  await withClient(async (listener) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const heard: string[] = [];
    listener.on("notification", ({ channel, payload }) => {
      heard.push(`${channel}: ${payload}`);
      if (heard.length === 3) resolve();
    });
    await listener.query("listen news");
    await withClient((sender) => sender.query("notify news, 'one'"));
    await cluster.primary.sql("notify news, 'two'");
    await listener.query("select pg_notify('news', 'three')");
    await promise;

    expect(new Set(heard)).toEqual(new Set(["news: one", "news: two", "news: three"]));
  });
  // Its connection was reset, so that the next client of it does not listen.
  const listening = await withClient((client) => client.query("select pg_listening_channels()"));
  expect(listening.rows).toEqual([]);
});

test("several statements in one string give several results", async () => {
  await withClient(async (client) => {
    const results: unknown = await client.query("select 1 as a; select 2 as b, 3 as c");

    expect(results).toMatchObject([{ rows: [{ a: 1 }] }, { rows: [{ b: 2, c: 3 }] }]);
  });
});

test("a query is read in portions of rows", async () => {
  await withClient(async (client) => {
    const rows: unknown[] = [];
    // The types leave the option out, the driver has it.
    const inPortions = { text: "select generate_series(1, 25) as n", rows: 10 };
    const query = new pg.Query(inPortions);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    query.on("row", (row) => rows.push(row));
    query.on("end", () => resolve());
    query.on("error", reject);
    client.query(query);
    await promise;

    expect(rows).toEqual(Array.from({ length: 25 }, (_, i) => ({ n: i + 1 })));
  });
});

test("types, nulls and large values come as from PostgreSQL itself", async () => {
  const text = `select 1::int8, 1.5::numeric, true, null, '{1,2}'::int[], '{"a":1}'::jsonb,
    '2026-01-02 03:04:05+00'::timestamptz, '\\x00ff'::bytea, repeat('ä', 100000) as big`;
  const ours = await withClient((client) => client.query(text));
  const direct = await withClient((client) => client.query(text), {
    connectionString: cluster.primary.url("app"),
  });

  expect(ours.rows).toEqual(direct.rows);
  expect(ours.fields).toEqual(
    direct.fields.map((field) =>
      expect.objectContaining({ name: field.name, dataTypeID: field.dataTypeID }),
    ),
  );
});

test("TLS carries SCRAM, and a JWT as password", async () => {
  const base = { host: "127.0.0.1", port: gateway.postgres.port, database: "app" };
  const ssl = { rejectUnauthorized: false };
  const who = (config: pg.ClientConfig): Promise<unknown> =>
    withClient(async (client) => (await client.query("select current_user as me")).rows, config);

  const answers = [
    await who({ ...base, ssl, user: "app", password: cluster.passwords.app }),
    await who({ ...base, ssl, user: "anyone", password: await gateway.token() }),
    await who({
      ...base,
      user: "anyone",
      password: await gateway.token({ role: "authenticated" }),
    }),
  ];

  expect(answers).toEqual([[{ me: "app" }], [{ me: "app" }], [{ me: "app_user" }]]);
});

test("a query_timeout of the driver leaves nothing that reaches the next client", async () => {
  const code = await withClient((client) => codeOf(client.query("select pg_sleep(30)")), {
    connectionString: gateway.url(),
    query_timeout: 100,
  });
  const { rows } = await withClient((client) => client.query("select 1 as one"));

  expect(code).toBe("Error: Query read timeout");
  expect(rows).toEqual([{ one: 1 }]);
});
