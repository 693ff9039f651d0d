// PgBouncer from the path, as a process of its own and under an account that it accepts.
import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { findFreePort } from "#gateway/embedded/free-port.ts";
import {
  findPostgresAccount,
  type PostgresAccount,
  writeForAccount,
} from "#gateway/embedded/postgres-account.ts";
import { CERTIFICATE_PEM, PRIVATE_KEY_PEM } from "#test/fixtures/tls-fixture.ts";
import type { BenchDatabase } from "../bench-database.ts";
import { type ChildServer, isListening, startChild } from "../child-process.ts";
import type { Endpoint } from "../endpoint.ts";

export const PGBOUNCER_MISSING = "pgbouncer is not on the path";

export interface PgbouncerOptions {
  readonly poolMode: "transaction" | "session";
  readonly poolSize: number;
  readonly clientsMax: number;
  readonly hasTls?: boolean;
  /** What 1.21 and later need to keep prepared statements in transaction mode. */
  readonly maxPreparedStatements?: number;
}

export interface Pgbouncer extends ChildServer {
  readonly endpoint: Endpoint;
}

export function hasPgbouncer(): boolean {
  return Bun.which("pgbouncer") !== null;
}

export async function startPgbouncer(
  database: BenchDatabase,
  options: PgbouncerOptions,
): Promise<Pgbouncer> {
  const account = await findPostgresAccount();
  const port = await findFreePort(undefined, new Set());
  const folder = join(database.folder, `pgbouncer-${port}`);
  await mkdir(folder, { mode: 0o700 });
  if (account !== undefined) await chown(folder, account.uid, account.gid);
  const { cluster } = database;
  const files = {
    "pgbouncer.ini": settings(cluster.primary.port, port, folder, options),
    "users.txt": `"app" "${await readVerifier(database)}"\n`,
    "cert.pem": CERTIFICATE_PEM,
    "key.pem": PRIVATE_KEY_PEM,
  };
  await writeAll(account, folder, files);
  const child = await startChild({
    words: ["pgbouncer", join(folder, "pgbouncer.ini")],
    account,
    isReady: () => isListening(port),
  });
  return { ...child, endpoint: { port, user: "app", password: cluster.passwords.app } };
}

/**
 * PostgreSQL's own verifier: with it PgBouncer passes a client's SCRAM proof on to the server. With the password itself it would
 * derive the key anew at each login, which nobody does to a busy PgBouncer.
 */
async function readVerifier({ cluster }: BenchDatabase): Promise<string> {
  const [row] = await cluster.primary.sql(
    "SELECT rolpassword FROM pg_authid WHERE rolname = 'app'",
  );
  const verifier = row?.["rolpassword"];
  if (typeof verifier !== "string") throw new Error("the role app has no verifier");
  return verifier;
}

async function writeAll(
  account: PostgresAccount,
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await writeForAccount(account, join(folder, name), text);
  }
}

function settings(
  server: number,
  port: number,
  folder: string,
  { poolMode, poolSize, clientsMax, hasTls, maxPreparedStatements }: PgbouncerOptions,
): string {
  const tls = `client_tls_sslmode = allow
client_tls_cert_file = ${join(folder, "cert.pem")}
client_tls_key_file = ${join(folder, "key.pem")}`;
  return `[databases]
app = host=127.0.0.1 port=${server} dbname=app
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users.txt")}
pool_mode = ${poolMode}
default_pool_size = ${poolSize}
max_client_conn = ${clientsMax}
server_tls_sslmode = disable
log_connections = 0
log_disconnections = 0
log_stats = 0
ignore_startup_parameters = extra_float_digits
${maxPreparedStatements === undefined ? "" : `max_prepared_statements = ${maxPreparedStatements}`}
${hasTls === true ? tls : ""}
`;
}
