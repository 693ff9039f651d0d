// pgbench as it comes, in its three protocol modes, with more clients than server connections.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { hasCommand, runCommand } from "#test/support/command.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const isMissing = !hasCommand("pgbench");
const unlessMissing = isMissing ? " (skipped: pgbench is not installed)" : "";

const CLIENTS = 8;
const TRANSACTIONS = 40;

let cluster: Cluster;
let gateway: TestGateway;
let folder: string;

beforeAll(async () => {
  if (isMissing) return;
  cluster = await testCluster({ replicas: 1 });
  gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 3" },
  });
  folder = await mkdtemp(join(tmpdir(), "walgate-pgbench-"));
  const pipelines = `\\startpipeline
    update pgbench_tellers set tbalance = tbalance + 1 where tid = 1;
    select tbalance from pgbench_tellers where tid = 1;
    \\endpipeline
    \\startpipeline
    select 1;
    \\endpipeline\n`;
  await writeFile(join(folder, "pipelines.sql"), pipelines);
  const initialized = await runCommand(["pgbench", "-i", "-q", "-s", "1", gateway.url()]);
  if (initialized.exitCode !== 0) throw new Error(initialized.stderr);
});
afterAll(async () => {
  await gateway?.stop();
  await cluster?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** A thread for each client: pgbench 15 waits in PQprepare for one of them while the others hold transactions. */
async function bench(...words: readonly string[]): Promise<{ processed: string; stderr: string }> {
  const { stdout, stderr } = await runCommand([
    "pgbench",
    "-n",
    `-c${CLIENTS}`,
    `-j${CLIENTS}`,
    `-t${TRANSACTIONS}`,
    ...words,
    gateway.url(),
  ]);
  const processed = /actually processed: (.*)$/m.exec(stdout)?.[1] ?? stdout;
  return { processed, stderr };
}

const ALL = {
  processed: `${CLIENTS * TRANSACTIONS}/${CLIENTS * TRANSACTIONS}`,
  stderr: "",
};

describe.skipIf(isMissing)(`pgbench${unlessMissing}`, () => {
  test.each([["simple"], ["extended"], ["prepared"]])(
    "runs its transactions in mode %s over fewer connections, and none is lost",
    async (mode) => {
      const before = await cluster.primary.sql("select count(*)::int as n from pgbench_history");
      const result = await bench("-M", mode);
      const after = await cluster.primary.sql("select count(*)::int as n from pgbench_history");
      const sums = await cluster.primary.sql(
        `select (select sum(abalance) from pgbench_accounts) =
                (select sum(delta) from pgbench_history) as equal`,
      );

      expect(result).toEqual(ALL);
      expect(Number(after[0]?.["n"]) - Number(before[0]?.["n"])).toBe(CLIENTS * TRANSACTIONS);
      expect(sums).toEqual([{ equal: true }]);
    },
  );

  test.each([["simple"], ["extended"], ["prepared"]])("runs selects in mode %s", async (mode) => {
    expect(await bench("-S", "-M", mode)).toEqual(ALL);
  });

  test("reconnects for each transaction", async () => {
    expect(await bench("-S", "-C")).toEqual(ALL);
  });

  test("runs pipelines", async () => {
    expect(await bench("-M", "extended", "-f", join(folder, "pipelines.sql"))).toEqual(ALL);
  });
});
