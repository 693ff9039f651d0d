// The local cluster on a home of its own: SCRAM logins, roles and rights, streaming, second start.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { caughtUp } from "#gateway/embedded/caught-up.ts";
import { ClusterError } from "#gateway/embedded/cluster-error.ts";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { startCluster } from "#gateway/embedded/start-cluster.ts";
import { temporaryHome } from "#test/support/temporary-home.ts";

/** What a developer waits for at each start but the first. */
const SECOND_START_MS_MAX = 2_000;

let home: string;
let cluster: Cluster;

beforeAll(async () => {
  home = await temporaryHome();
  cluster = await startCluster({ home });
});

afterAll(async () => {
  await cluster.stop();
  await rm(home, { recursive: true, force: true });
});

describe("a new cluster", () => {
  test("streams from the primary to two replicas", async () => {
    await caughtUp(cluster);

    const streams = await cluster.primary.sql(
      "SELECT application_name, state FROM pg_stat_replication ORDER BY 1",
    );
    expect(streams).toEqual([
      { application_name: "replica1", state: "streaming" },
      { application_name: "replica2", state: "streaming" },
    ]);
    for (const replica of cluster.replicas) {
      expect(await replica.sql("SELECT pg_is_in_recovery() AS standby")).toEqual([
        { standby: true },
      ]);
    }
  });

  test("keeps SCRAM verifiers only, and no trust rule", async () => {
    const verifiers = await cluster.primary.sql(
      `SELECT rolname, split_part(rolpassword, '$', 1) AS kind
       FROM pg_authid WHERE rolcanlogin ORDER BY 1`,
    );
    const methods = await cluster.primary.sql(
      "SELECT DISTINCT auth_method FROM pg_hba_file_rules ORDER BY 1",
    );

    expect(verifiers).toEqual(
      ["app", "app_user", "postgres", "replicator", "walgate_monitor"].map((rolname) => ({
        rolname,
        kind: "SCRAM-SHA-256",
      })),
    );
    expect(methods).toEqual([{ auth_method: "scram-sha-256" }]);
  });

  test("refuses a wrong password", async () => {
    const url = new URL(cluster.primary.url("app"));
    url.password = "wrong";

    expect(await sqlState(url.href, "SELECT 1")).toBe("28P01");
  });

  test("gives app_user what app makes, and nothing else", async () => {
    await query(cluster.primary.url("app"), "CREATE TABLE note (id serial, body text)");

    const url = cluster.primary.url("app_user");
    expect(await query(url, "INSERT INTO note (body) VALUES ('a') RETURNING *")).toEqual([
      { id: 1, body: "a" },
    ]);
    expect(await query(url, "UPDATE note SET body = 'b' RETURNING body")).toEqual([{ body: "b" }]);
    expect(await query(url, "DELETE FROM note RETURNING id")).toEqual([{ id: 1 }]);
    expect(await sqlState(url, "TRUNCATE note")).toBe("42501");
    expect(await sqlState(url, "CREATE TABLE mine (id int)")).toBe("42501");
    expect(await sqlState(url, "CREATE TEMP TABLE mine (id int)")).toBe("42501");
    expect(await sqlState(url, "SET ROLE app")).toBe("42501");
    expect(await sqlState(cluster.primary.url("walgate_monitor"), "SELECT FROM public.note")).toBe(
      "42501",
    );
  });

  test("keeps passwords in files that only their owner reads", async () => {
    const files = ["credentials.json", "data/primary/local.conf", "data/replica1/local.conf"];
    for (const file of files) {
      expect((await stat(join(home, file))).mode & 0o077).toBe(0);
    }
    for (const log of ["primary.log", "replica1.log", "replica2.log"]) {
      const text = await readFile(join(home, log), "utf8");
      const found = Object.values(cluster.passwords).filter((password) => text.includes(password));
      expect(found).toEqual([]);
    }
  });

  test("refuses a second launcher in the same home", async () => {
    const refusal: unknown = await startCluster({ home }).catch((error: unknown) => error);

    expect(refusal).toBeInstanceOf(ClusterError);
    expect(refusal).toHaveProperty("message", expect.stringContaining("already running"));
  });
});

describe("a server of the cluster", () => {
  test("comes back on its port after a crash, with what was committed", async () => {
    const { port } = cluster.primary;
    await cluster.primary.sql("CREATE TABLE crash AS SELECT 1 AS id");

    await cluster.kill("primary");
    expect(await sqlState(cluster.primary.url("app"), "SELECT 1")).toBe("ECONNREFUSED");
    await cluster.start("primary");

    expect(cluster.primary.port).toBe(port);
    expect(await cluster.primary.sql("SELECT id FROM crash")).toEqual([{ id: 1 }]);
    await caughtUp(cluster);
  });

  test("catches up after a shutdown in each mode", async () => {
    for (const mode of ["smart", "fast", "immediate"] as const) {
      await cluster.stopServer("replica2", mode);
      await cluster.primary.sql(`CREATE TABLE missed_${mode} AS SELECT 1 AS id`);
      await cluster.start("replica2");
      await caughtUp(cluster);

      const rows = await cluster.replicas[1]?.sql(`SELECT id FROM missed_${mode}`);
      expect(rows).toEqual([{ id: 1 }]);
    }
  });
});

test("a second start reuses data and passwords, and takes less than two seconds", async () => {
  const { passwords } = cluster;
  await cluster.primary.sql("CREATE TABLE kept AS SELECT 1 AS id");
  await cluster.stop();

  const began = performance.now();
  cluster = await startCluster({ home, settings: { log_statement: "ddl", work_mem: "7MB" } });

  expect(performance.now() - began).toBeLessThan(SECOND_START_MS_MAX);
  expect(cluster.passwords).toEqual(passwords);
  for (const node of [cluster.primary, ...cluster.replicas]) {
    expect(await node.sql("SELECT id, current_setting('work_mem') AS mem FROM kept")).toEqual([
      { id: 1, mem: "7MB" },
    ]);
  }
});

test("a server that cannot start is reported with the end of its log, and nothing stays", async () => {
  await cluster.stop();

  const refusal: unknown = await startCluster({
    home,
    settings: { shared_buffers: "nonsense" },
  }).catch((error: unknown) => error);

  expect(refusal).toHaveProperty(
    "message",
    expect.stringContaining('invalid value for parameter "shared_buffers"'),
  );
  // Neither the lock nor a server is left.
  cluster = await startCluster({ home });
});

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** The SQLSTATE (or the system's error code) of a statement that is expected to fail. */
async function sqlState(url: string, text: string): Promise<unknown> {
  try {
    return { rows: await query(url, text) };
  } catch (error) {
    return error instanceof Error && "code" in error ? error.code : error;
  }
}
