// Gives a test file a PostgreSQL cluster of its own, copied from a template that is made once.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Cluster, ClusterOptions } from "#gateway/embedded/cluster.ts";
import { startCluster } from "#gateway/embedded/start-cluster.ts";
import { homesFolder, removeAbandonedHomes, temporaryHome } from "./temporary-home.ts";

const EMBEDDED_FOLDER = join(import.meta.dir, "../../gateway/embedded");

/**
 * A running primary with two replicas (or as `options` say), with data of its own. The caller stops
 * it, in `afterAll` or by `await using`; stopping also removes the data.
 */
export async function testCluster(options: Omit<ClusterOptions, "home"> = {}): Promise<Cluster> {
  const template = await templatePath();
  await removeAbandonedHomes();
  await ensureTemplate(template);
  const home = await temporaryHome();
  try {
    await copyFolder(template, home);
    const cluster = await startCluster({ ...options, home });
    let stopping: Promise<void> | undefined;
    const stop = (): Promise<void> => (stopping ??= stopAndRemove(cluster));
    return { ...cluster, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await removeFolder(home);
    throw error;
  }
}

async function stopAndRemove(cluster: Cluster): Promise<void> {
  try {
    await cluster.stop();
  } finally {
    await removeFolder(cluster.home);
  }
}

function removeFolder(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true });
}

/**
 * Made by whoever comes first. Processes that come at the same time each make one, and the first
 * rename wins: no lock has to outlive a killed test run.
 */
async function ensureTemplate(template: string): Promise<void> {
  if (!existsSync(template)) {
    // The code has changed, so that templates of its earlier states are of no more use.
    await removeAbandonedHomes(/^walgate-test-template-/);
    const draft = await temporaryHome();
    try {
      const cluster = await startCluster({ home: draft });
      await cluster.stop();
      await rename(draft, template).catch((error: unknown) => {
        if (!existsSync(template)) throw error;
      });
    } finally {
      await removeFolder(draft);
    }
  }
  // Everybody may write to /var/tmp: never start what another user has put there.
  const { uid } = await lstat(template);
  if (uid !== process.getuid?.()) throw new Error(`${template} is another user's`);
}

async function templatePath(): Promise<string> {
  const user = process.getuid?.() ?? 0;
  return join(await homesFolder(), `walgate-test-template-${user}-${await codeHash()}`);
}

/** The template depends on PostgreSQL's version and on the code that makes it. */
async function codeHash(): Promise<string> {
  const hash = createHash("sha256");
  const names = (await readdir(EMBEDDED_FOLDER)).toSorted();
  for (const name of names) hash.update(await readFile(join(EMBEDDED_FOLDER, name)));
  hash.update(await readFile(join(EMBEDDED_FOLDER, "../../package.json")));
  return hash.digest("hex").slice(0, 12);
}

async function copyFolder(from: string, to: string): Promise<void> {
  const child = Bun.spawn(["cp", "-a", `${from}/.`, to], { stderr: "pipe", stdout: "ignore" });
  const errors = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`copying the cluster template failed: ${errors}`);
}
