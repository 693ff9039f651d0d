// Runs PostgreSQL's programs under an account that they accept: they refuse to be started by root.
import { chown, readFile, writeFile } from "node:fs/promises";
import { ClusterError } from "./cluster-error.ts";

/** An unprivileged account for PostgreSQL; undefined when the launcher itself is unprivileged. */
export type PostgresAccount = { readonly uid: number; readonly gid: number } | undefined;

/** The packaged one first; `nobody` exists everywhere and does as well. */
const ACCOUNT_NAMES = ["postgres", "nobody"];

/** initdb looks up its own user, so only an account with a passwd entry will do. */
export async function findPostgresAccount(): Promise<PostgresAccount> {
  if (process.getuid?.() !== 0) return undefined;
  const passwd = await readFile("/etc/passwd", "utf8");
  for (const name of ACCOUNT_NAMES) {
    const entry = passwd.split("\n").find((line) => line.startsWith(`${name}:`));
    const [, , uidField, gidField] = entry?.split(":") ?? [];
    const uid = Number(uidField);
    const gid = Number(gidField);
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  throw new ClusterError(
    `PostgreSQL does not run as root, and no account ${ACCOUNT_NAMES.join(" or ")} exists`,
  );
}

/** The environment of PostgreSQL's programs. HOME and PG* of the caller must not reach them. */
export function postgresEnvironment(): Record<string, string> {
  return { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
}

/** Runs a program to its end; throws ClusterError with its output when it fails. */
export async function runAs(account: PostgresAccount, command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], {
    ...account,
    // The launcher's own folder may be closed to the account.
    cwd: "/",
    env: postgresEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) {
    throw new ClusterError(`${command.join(" ")} exited with ${code}\n${output}${errors}`);
  }
}

/** Writes a file that only the account can read. */
export async function writeForAccount(
  account: PostgresAccount,
  path: string,
  text: string,
): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  if (account !== undefined) await chown(path, account.uid, account.gid);
}
