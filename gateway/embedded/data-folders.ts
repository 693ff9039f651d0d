// Makes the data folders of the local servers: one initdb, and a cold copy of it for each replica.
import { existsSync } from "node:fs";
import { appendFile, chmod, chown, lstat, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "./cluster-error.ts";
import type { ServerName } from "./cluster.ts";
import { runAs, writeForAccount, type PostgresAccount } from "./postgres-account.ts";
import { stopLeftover } from "./server-process.ts";
import { INITDB_SETTINGS } from "./server-settings.ts";

/** The settings that each start writes, below the data folder. */
export const SETTINGS_FILE = "local.conf";

export interface DataFoldersInput {
  readonly home: string;
  readonly binaries: string;
  readonly account: PostgresAccount;
  readonly password: string;
  readonly names: readonly ServerName[];
}

export function dataFolder(home: string, name: ServerName): string {
  return join(home, "data", name);
}

/** The home folder, made when missing. Refused when another user owns it (it may be in /var/tmp). */
export async function openHome(home: string, account: PostgresAccount): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o755 });
  const found = await lstat(home);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new ClusterError(`${home} is not a folder of this user`);
  }
  const data = join(home, "data");
  await mkdir(data, { recursive: true, mode: 0o700 });
  if (account === undefined) return;
  // The account has to pass through; what it finds there is closed to everybody else.
  await chmod(home, 0o755);
  await chown(data, account.uid, account.gid);
}

/** Stops what an earlier launcher left running and makes the folders that are missing. */
export async function prepareDataFolders(input: DataFoldersInput): Promise<void> {
  const { home, account, names } = input;
  for (const name of names.toReversed()) await stopLeftover(dataFolder(home, name));
  if (account !== undefined) {
    // The account may have changed since the last start, and postgres insists on owning its data.
    const owner = `${account.uid}:${account.gid}`;
    await runAs(undefined, ["chown", "-R", owner, join(home, "data")]);
  }
  if (!isComplete(home, "primary")) await createPrimary(input);
  for (const name of names) if (!isComplete(home, name)) await copyPrimary(input, name);
}

/** Written when a data folder is done: one without it is half made, and made anew. */
function completeFile(home: string, name: ServerName): string {
  return join(home, "data", `${name}.complete`);
}

function isComplete(home: string, name: ServerName): boolean {
  return existsSync(completeFile(home, name));
}

async function createPrimary(input: DataFoldersInput): Promise<void> {
  const { home, binaries, account, password } = input;
  // A replica is worth nothing without the primary that it was copied from.
  for (const name of ["primary", "replica1", "replica2"] as const) {
    await rm(completeFile(home, name), { force: true });
    await rm(dataFolder(home, name), { recursive: true, force: true });
  }
  const folder = dataFolder(home, "primary");
  const passwordFile = join(home, "data", "initdb-password");
  await writeForAccount(account, passwordFile, `${password}\n`);
  try {
    await runAs(account, [
      join(binaries, "bin", "initdb"),
      `--pgdata=${folder}`,
      "--username=postgres",
      "--auth=scram-sha-256",
      `--pwfile=${passwordFile}`,
      "--encoding=UTF8",
      "--locale-provider=builtin",
      "--locale=C.UTF-8",
      "--lc-messages=C",
      "--no-sync",
      "--no-instructions",
      ...INITDB_SETTINGS.map((setting) => `--set=${setting}`),
    ]);
  } finally {
    await rm(passwordFile, { force: true });
  }
  await appendFile(join(folder, "postgresql.conf"), `\ninclude_if_exists = '${SETTINGS_FILE}'\n`);
  await writeForAccount(account, completeFile(home, "primary"), "");
}

/** The primary does not run yet, so that a plain copy of its files is consistent. */
async function copyPrimary(input: DataFoldersInput, name: ServerName): Promise<void> {
  const { home, account } = input;
  const folder = dataFolder(home, name);
  await rm(folder, { recursive: true, force: true });
  await runAs(account, ["cp", "-a", dataFolder(home, "primary"), folder]);
  // The primary's slots in a replica would keep its WAL for nobody.
  await rm(join(folder, "pg_replslot"), { recursive: true, force: true });
  await runAs(account, ["mkdir", "-m", "700", join(folder, "pg_replslot")]);
  await rm(join(folder, "postmaster.pid"), { force: true });
  await writeForAccount(account, join(folder, "standby.signal"), "");
  await writeForAccount(account, completeFile(home, name), "");
}
