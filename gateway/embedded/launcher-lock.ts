// Lets one launcher at a time use a home folder.
import { readFile, rm, writeFile } from "node:fs/promises";
import { ClusterError } from "./cluster-error.ts";
import { processStart } from "./process-table.ts";

/** A lock that was left behind is removed once; a second failure means that others want it too. */
const LOCK_ATTEMPTS = 3;

/**
 * Takes the lock; returns its release. The file names the holder's pid and start time: after a
 * crash the pid may belong to somebody else, the pair does not.
 */
export async function acquireLauncherLock(path: string): Promise<() => Promise<void>> {
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    if (await tryCreate(path)) return () => rm(path, { force: true });
    const [pid = "", start] = (await readFile(path, "utf8").catch(() => "")).split("\n");
    if (Number(pid) > 0 && (await processStart(Number(pid))) === start) {
      throw new ClusterError(`already running (pid ${pid}); stop that one first`);
    }
    await rm(path, { force: true });
  }
  throw new ClusterError(`${path}: other launchers keep taking the lock`);
}

async function tryCreate(path: string): Promise<boolean> {
  const text = `${process.pid}\n${(await processStart(process.pid)) ?? ""}\n`;
  try {
    await writeFile(path, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}
