// The gateway of this tree as a process of its own.
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SignJWT } from "jose";
import { findFreePort } from "#gateway/embedded/free-port.ts";
import { CERTIFICATE_PEM, PRIVATE_KEY_PEM } from "#test/fixtures/tls-fixture.ts";
import type { BenchDatabase } from "../bench-database.ts";
import { type ChildServer, startChild } from "../child-process.ts";
import type { Endpoint } from "../endpoint.ts";

const MAIN = resolve(import.meta.dir, "../../../gateway/main.ts");
const ISSUER = "https://issuer.bench";
const AUDIENCE = "walgate";
const JWT_SECRET = "a secret of the bench, at least 32 bytes long";
const TOKEN_LIFETIME = "12h";

export interface WalgateOptions {
  readonly poolSize: number;
  /** For runs with more clients than usual. */
  readonly clientsMax: number;
  readonly hasTls?: boolean;
}

export interface Walgate extends ChildServer {
  readonly endpoint: Endpoint;
  /** Base URL of the HTTP door. */
  readonly http: string;
  /** A JWT that leads to the trusted profile. */
  readonly token: string;
}

export async function startWalgate(
  database: BenchDatabase,
  options: WalgateOptions,
): Promise<Walgate> {
  const postgres = await findFreePort(undefined, new Set());
  const http = await findFreePort(undefined, new Set([postgres]));
  const folder = join(database.folder, `walgate-${postgres}`);
  await mkdir(folder);
  const config = join(folder, "walgate.toml");
  await writeFile(config, toml(database.cluster.primary.port, postgres, http, options));
  await writeFile(join(folder, "cert.pem"), CERTIFICATE_PEM);
  await writeFile(join(folder, "key.pem"), PRIVATE_KEY_PEM, { mode: 0o600 });
  const { app, walgate_monitor } = database.cluster.passwords;
  const scheme = options.hasTls === true ? "https" : "http";
  const url = `${scheme}://127.0.0.1:${http}`;
  const child = await startChild({
    words: [process.execPath, MAIN, "serve", "--config", config],
    env: {
      BENCH_APP_PASSWORD: app,
      BENCH_MONITOR_PASSWORD: walgate_monitor,
      BENCH_JWT_SECRET: JWT_SECRET,
      BENCH_TOKEN_KEY: "a key for the tokens of the bench, 32 bytes",
    },
    isReady: () => isReady(`${url}/ready`),
  });
  return {
    ...child,
    endpoint: { port: postgres, user: "app", password: app },
    http: url,
    token: await signToken(),
  };
}

async function isReady(url: string): Promise<boolean> {
  try {
    // The certificate is self-signed, and only asks whether the process is up.
    return (await fetch(url, { tls: { rejectUnauthorized: false } })).ok;
  } catch {
    // Refused: not yet.
    return false;
  }
}

function signToken(): Promise<string> {
  return new SignJWT({ role: "service" })
    .setProtectedHeader({ alg: "HS256" })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject("bench")
    .setExpirationTime(TOKEN_LIFETIME)
    .sign(new TextEncoder().encode(JWT_SECRET));
}

/** One server: a replica would add another server's work to the gateway's side of the comparison. */
function toml(server: number, postgres: number, http: number, options: WalgateOptions): string {
  const tls = 'tls = { cert_file = "cert.pem", key_file = "key.pem" }';
  return `[gateway]
http = "127.0.0.1:${http}"
postgres = "127.0.0.1:${postgres}"
max_client_conn = ${options.clientsMax}
shutdown_timeout = 1
log_level = "warning"
${options.hasTls === true ? tls : ""}
[pool]
pool_mode = "transaction"
default_pool_size = ${options.poolSize}
[tokens]
keys = [{ secret_env = "BENCH_TOKEN_KEY" }]
[databases.app]
servers = ["127.0.0.1:${server}"]
monitor_user = "walgate_monitor"
monitor_password_env = "BENCH_MONITOR_PASSWORD"
sslmode = "disable"
[profiles.server]
database = "app"
user = "app"
password_env = "BENCH_APP_PASSWORD"
sql = "trusted"
[[auth.users]]
name = "app"
secret_env = "BENCH_APP_PASSWORD"
[[auth.jwt]]
issuer = "${ISSUER}"
audience = "${AUDIENCE}"
secret_env = "BENCH_JWT_SECRET"
[[auth.rules]]
method = "scram-sha-256"
user = "app"
profile = "server"
[[auth.rules]]
method = "jwt"
issuer = "${ISSUER}"
claims = { role = "service" }
profile = "server"
`;
}
