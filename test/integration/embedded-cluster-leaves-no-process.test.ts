// However its launcher ends, the local cluster leaves no process: by signal, by SIGKILL, by stop().
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { startCluster } from "#gateway/embedded/start-cluster.ts";
import { temporaryHome } from "#test/support/temporary-home.ts";

const FIXTURE = join(import.meta.dir, "../fixtures/cluster-launcher-fixture.ts");
const END_TIMEOUT_MS = 20_000;

let home: string;

beforeEach(async () => {
  home = await temporaryHome();
});

afterEach(() => rm(home, { recursive: true, force: true }));

test.each(["SIGKILL", "SIGTERM"] as const)(
  "a launcher ended by %s leaves no process",
  async (signal) => {
    await using launcher = await startLauncher();
    expect((await serversIn(home)).length).toBe(3);

    launcher.kill(signal);
    await launcher.exited;

    await pollUntil(
      async () => (await serversIn(home)).length === 0,
      END_TIMEOUT_MS,
      `end of the servers after ${signal}`,
    );
    // The data is good, and the lock of the dead launcher holds nobody up.
    await using cluster = await startCluster({ home });
    expect(await cluster.primary.sql("SELECT id FROM launched")).toEqual([{ id: 1 }]);
  },
);

test("servers that were left behind are stopped by the next start", async () => {
  // Left behind as by a launcher that could not bind their life to its own: they run, and its lock is nobody's.
  const first = await startCluster({ home });
  await first.primary.sql("CREATE TABLE launched AS SELECT 1 AS id");
  const left = await serversIn(home);
  await rm(join(home, "launcher.pid"));

  await using cluster = await startCluster({ home });

  expect(await cluster.primary.sql("SELECT id FROM launched")).toEqual([{ id: 1 }]);
  const running = await serversIn(home);
  expect(running.length).toBe(3);
  expect(running.filter((pid) => left.includes(pid))).toEqual([]);
});

test("a stopped cluster leaves no process", async () => {
  const cluster = await startCluster({ home, replicas: 1 });
  expect((await serversIn(home)).length).toBe(2);

  await cluster.stop();

  expect(await serversIn(home)).toEqual([]);
});

/** A process of its own that starts a cluster in `home` and makes the table `launched`. */
async function startLauncher(): Promise<Subprocess<"ignore", "pipe", "inherit">> {
  const launcher = Bun.spawn([process.execPath, FIXTURE, home], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  for await (const chunk of launcher.stdout) {
    if (new TextDecoder().decode(chunk).includes("ready")) return launcher;
  }
  throw new Error("the launcher ended before its cluster was ready");
}

/** The pids of the postgres servers whose data lies in `folder`, from Linux's table of processes. */
async function serversIn(folder: string): Promise<number[]> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(
    pids.map(async (pid) => {
      // It may end between the listing and the read.
      const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      return line.includes("/bin/postgres") && line.includes(folder);
    }),
  );
  return pids.filter((_, index) => found[index]);
}
