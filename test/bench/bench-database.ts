// One PostgreSQL for all contenders, with pgbench's tables, in memory where there is room.
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { startCluster } from "#gateway/embedded/start-cluster.ts";
import { runCommand } from "#test/support/command.ts";
import { homesFolder, removeAbandonedHomes } from "#test/support/temporary-home.ts";

/** Rows of pgbench_accounts are 100,000 times this: 15 MB, which stay in the server's buffers. */
const SCALE = 1;
/** 256 direct clients, three gateways with their pools, and some to spare. */
const MAX_CONNECTIONS = 450;

const HOME_NAME = /^walgate-bench-\w{6}$/;

export interface BenchDatabase extends AsyncDisposable {
  readonly cluster: Cluster;
  /** The cluster's home, and the place for the configurations of contenders; removed at the end. */
  readonly folder: string;
}

export async function startBenchDatabase(): Promise<BenchDatabase> {
  // What a killed bench has left behind.
  await removeAbandonedHomes(HOME_NAME);
  const folder = await mkdtemp(join(await homesFolder(), "walgate-bench-"));
  try {
    const cluster = await startCluster({
      home: folder,
      replicas: 0,
      settings: { max_connections: String(MAX_CONNECTIONS), shared_buffers: "128MB" },
    });
    const stop = async (): Promise<void> => {
      await cluster.stop();
      await rm(folder, { recursive: true, force: true });
    };
    const words = ["pgbench", "-i", "-q", "-s", String(SCALE), cluster.primary.url("app")];
    const { exitCode, stderr } = await runCommand(words);
    if (exitCode !== 0) {
      await stop();
      throw new Error(`pgbench -i failed: ${stderr}`);
    }
    return { cluster, folder, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
