// Keeps the passwords of the local cluster's roles next to its data, for the launcher's eyes only.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { ClusterError } from "./cluster-error.ts";

/** The roles that clients may log in as; `replicator` is only for the replicas themselves. */
export type ClusterRole = "postgres" | "app" | "app_user" | "walgate_monitor";

export type ClusterPasswords = Readonly<Record<ClusterRole, string>>;

export type ClusterCredentials = Readonly<Record<ClusterRole | "replicator", string>>;

/** 192 bits, and base64url needs no quoting in a URL, a conninfo string or SQL. */
const PASSWORD_BYTES = 24;

/** Reads the passwords, or makes them where there are none yet. */
export async function loadCredentials(path: string): Promise<ClusterCredentials> {
  if (existsSync(path)) return parseCredentials(path, await readFile(path, "utf8"));
  const password = (): string => randomBytes(PASSWORD_BYTES).toString("base64url");
  const credentials: ClusterCredentials = {
    postgres: password(),
    app: password(),
    app_user: password(),
    walgate_monitor: password(),
    replicator: password(),
  };
  await writeFile(path, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  return credentials;
}

function parseCredentials(path: string, text: string): ClusterCredentials {
  const value: unknown = JSON.parse(text);
  const read = (role: keyof ClusterCredentials): string => {
    const entry: unknown =
      typeof value === "object" && value !== null ? Reflect.get(value, role) : undefined;
    if (typeof entry === "string" && entry !== "") return entry;
    throw new ClusterError(`${path} names no password for ${role}`);
  };
  return {
    postgres: read("postgres"),
    app: read("app"),
    app_user: read("app_user"),
    walgate_monitor: read("walgate_monitor"),
    replicator: read("replicator"),
  };
}
