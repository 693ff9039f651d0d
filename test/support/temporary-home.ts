// Folders for the databases of tests: in memory where there is room, since disks of CI machines are slow.
import { existsSync } from "node:fs";
import { lstat, mkdtemp, readdir, readFile, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { processStart } from "#gateway/embedded/process-table.ts";

/** A dozen clusters of 150 MB at a time; containers often have no more than 64 MB of it. */
const MEMORY_BYTES_MIN = 2 * 1024 ** 3;
const HOME_NAME = /^walgate-test-\w{6}$/;
/** A home without a launcher may be one that is just being filled or, as a template, copied. */
const UNUSED_MS_MAX = 3_600_000;

/** Where homes are made. PostgreSQL's account has to be able to enter it, which /tmp may forbid. */
export async function homesFolder(): Promise<string> {
  if (!existsSync("/dev/shm")) return "/var/tmp";
  const { bavail, bsize } = await statfs("/dev/shm");
  return bavail * bsize >= MEMORY_BYTES_MIN ? "/dev/shm" : "/var/tmp";
}

/** A new empty folder; the caller removes it. */
export async function temporaryHome(): Promise<string> {
  return mkdtemp(join(await homesFolder(), "walgate-test-"));
}

/** Removes what killed test runs have left behind: homes, unless `names` says which else. */
export async function removeAbandonedHomes(names = HOME_NAME): Promise<void> {
  const folder = await homesFolder();
  for (const name of await readdir(folder)) {
    const home = join(folder, name);
    if (names.test(name) && (await isAbandoned(home)))
      await rm(home, { recursive: true, force: true });
  }
}

async function isAbandoned(home: string): Promise<boolean> {
  // Another test run may remove it at the same moment.
  const found = await lstat(home).catch(() => undefined);
  if (found === undefined || found.uid !== process.getuid?.()) return false;
  const lock = await readFile(join(home, "launcher.pid"), "utf8").catch(() => undefined);
  // Not mtime: copying a template sets that to the template's own.
  if (lock === undefined) return Date.now() - found.ctimeMs > UNUSED_MS_MAX;
  const [pid, start] = lock.split("\n");
  return (await processStart(Number(pid))) !== start;
}
