// The table of statements, run: reads on a streaming standby, the rest on its primary. After each
// statement the session is asked what it keeps, and the last test shows that the question notices.
// The three settings transaction_* are set anew by every transaction, so they are left out.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client } from "pg";
import { caughtUp } from "#gateway/embedded/caught-up.ts";
import type { Cluster, ServerNode } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { CASE_SCHEMA } from "#test/unit/pool/sql/case-group.ts";
import { PRIMARY_WITHOUT_PIN } from "#test/unit/pool/sql/primary-cases.ts";
import { READS } from "#test/unit/pool/sql/read-cases.ts";

const SESSION_STATE = `
  SELECT
    (SELECT count(*) FROM pg_prepared_statements WHERE from_sql) AS prepared,
    (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS cursors,
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
    (SELECT array_agg(channel) FROM pg_listening_channels() AS channel) AS channels,
    (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()) AS temporary,
    (SELECT jsonb_object_agg(name, setting) FROM pg_settings
      WHERE source = 'session' AND name NOT LIKE 'transaction\\_%') AS settings,
    nullif(current_setting('a.b', true), '') AS custom,
    current_user AS role, session_user AS login`;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
  for (const statement of CASE_SCHEMA) await cluster.primary.sql(statement);
  await caughtUp(cluster);
});

afterAll(() => cluster.stop());

async function connect(node: ServerNode): Promise<Client & AsyncDisposable> {
  const client = new Client({ connectionString: node.url("postgres") });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

async function stateOf(client: Client): Promise<unknown> {
  const { rows } = await client.query(SESSION_STATE);
  return rows;
}

const standby = (): ServerNode => {
  const [replica] = cluster.replicas;
  if (replica === undefined) throw new Error("The cluster has no replica.");
  return replica;
};

test("every statement that is classed as a read runs on a standby and leaves nothing", async () => {
  await using client = await connect(standby());
  const clean = await stateOf(client);
  const texts = READS.flatMap((group) => group.texts);

  for (const text of texts) {
    const outcome = await client.query(text).then(
      () => "ran",
      (error: unknown) => String(error),
    );
    expect([text, outcome, await stateOf(client)]).toEqual([text, "ran", clean]);
  }
  expect(texts.length).toBeGreaterThan(120);
});

// Definitions are rolled back, so that the next one finds the schema unchanged; a setting would still
// be seen, from inside the transaction. All else is committed, since ROLLBACK takes settings back.
test("statements without a pin leave nothing on the session", async () => {
  await using client = await connect(cluster.primary);
  const clean = await stateOf(client);
  let ranCount = 0;

  for (const { name, texts } of PRIMARY_WITHOUT_PIN) {
    for (const text of texts) {
      await client.query("BEGIN");
      const hasRun = await client.query(text).then(
        () => true,
        () => false,
      );
      const isDefinition = name === "definitions and maintenance";
      const inside = hasRun && isDefinition ? await stateOf(client) : clean;
      await client.query(isDefinition ? "ROLLBACK" : "COMMIT");
      if (hasRun) ranCount += 1;
      expect([text, inside, await stateOf(client)]).toEqual([text, clean, clean]);
    }
  }
  expect(ranCount).toBeGreaterThan(80);
});

test.each([
  "SET work_mem = '8MB'",
  "SELECT set_config('a.b', 'c', false)",
  "PREPARE q AS SELECT 1",
  "LISTEN channel",
  "SELECT pg_advisory_lock(1)",
  "CREATE TEMP TABLE made (id int)",
  "SELECT 1 AS id INTO TEMP made",
  "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; COMMIT",
  "SET ROLE app",
  "SET SESSION AUTHORIZATION app",
  "DO $$ BEGIN PERFORM set_config('a.b', 'c', false); END $$",
  "SELECT query_to_xml('SELECT set_config(''a.b'', ''c'', false)', true, true, '')",
  "SELECT * FROM ts_stat('SELECT to_tsvector(set_config(''a.b'', ''c'', false))')",
])("%s leaves something on the session", async (text) => {
  await using client = await connect(cluster.primary);
  const clean = await stateOf(client);

  await client.query(text);

  expect(await stateOf(client)).not.toEqual(clean);
});
