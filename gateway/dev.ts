// `walgate dev` and `npm start`: a local PostgreSQL cluster, the gateway in front of it, and what to paste next.
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { signDevelopmentToken } from "#auth/jwt/development-token.ts";
import { Secret } from "#auth/secret.ts";
import type { Gateway } from "./compose.ts";
import { loadConfig } from "./config/load.ts";
import { readTextFile } from "./config/read-text-file.ts";
import { devConfig } from "./dev-config.ts";
import { devGreeting } from "./dev-greeting.ts";
import { caughtUp } from "./embedded/caught-up.ts";
import { ClusterError } from "./embedded/cluster-error.ts";
import type { Cluster } from "./embedded/cluster.ts";
import { findFreePort } from "./embedded/free-port.ts";
import { startCluster } from "./embedded/start-cluster.ts";
import { createLogger } from "./telemetry/logger.ts";

const DEV_ISSUER = "walgate-dev";
const DEV_AUDIENCE = "walgate";
/** A week: long enough to come back to a terminal, short enough to be no credential. */
const TOKEN_LIFETIME_SECONDS = 7 * 24 * 3_600;
const SECRET_BYTES = 32;
const HTTP_PORT = 8_080;
const POSTGRES_PORT = 6_432;
const READY_TIMEOUT_MS = 15_000;

const HELP = `Usage: walgate dev [--http-port N] [--postgres-port N]

Starts PostgreSQL (a primary and two replicas) and the gateway on 127.0.0.1. A port that is taken
moves to the next free one. Data stays below .data, or for root below /var/tmp.
`;

/** Runs until a signal. The exit code: 0 an orderly end, 1 a failed start, 2 a wrong command line. */
export async function runDev(args: readonly string[]): Promise<number> {
  const ports = readArguments(args);
  if (typeof ports === "number") return ports;
  // Before the databases: a signal while they start must stop them too.
  const stopAsked = nextSignal();
  let cluster: Cluster | undefined;
  let gateway: Gateway | undefined;
  try {
    cluster = await startCluster({ log: print });
    const secrets = await loadSecrets(join(cluster.home, "dev-secrets.json"));
    gateway = await openGateway(cluster, secrets, ports);
    await prepareTable(cluster);
    const token = await signDevelopmentToken(
      new Secret(secrets.jwt),
      {
        issuer: DEV_ISSUER,
        audience: DEV_AUDIENCE,
        subject: "developer",
        claims: { role: "service" },
        lifetimeSeconds: TOKEN_LIFETIME_SECONDS,
      },
      Date.now(),
    );
    print(devGreeting(cluster, gateway, token));
    await stopAsked;
    print("stopping");
    return 0;
  } catch (error) {
    if (!(error instanceof ClusterError) && !(error instanceof StartError)) throw error;
    process.stderr.write(`walgate: ${error.message}\n`);
    return 1;
  } finally {
    await gateway?.stop();
    await cluster?.stop();
  }
}

/** A start that failed for a reason the user can mend. */
class StartError extends Error {
  override readonly name = "StartError";
}

interface Ports {
  readonly http: number;
  readonly postgres: number;
}

function readArguments(args: readonly string[]): Ports | number {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        "http-port": { type: "string", default: String(HTTP_PORT) },
        "postgres-port": { type: "string", default: String(POSTGRES_PORT) },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) {
      process.stdout.write(HELP);
      return 0;
    }
    return { http: toPort(values["http-port"]), postgres: toPort(values["postgres-port"]) };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    process.stderr.write(`walgate: ${error.message}\n\n${HELP}`);
    return 2;
  }
}

function toPort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_435) {
    throw new TypeError(`${text} is not a port from 1 to 65435`);
  }
  return port;
}

function nextSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => resolve());
  }
  return promise;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

interface DevSecrets {
  readonly jwt: string;
  readonly tokenKey: string;
}

/** Kept, so that tokens from before a restart stay good. */
async function loadSecrets(path: string): Promise<DevSecrets> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text !== undefined) {
    const value: unknown = JSON.parse(text);
    const read = (key: string): unknown =>
      typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
    const [jwt, tokenKey] = [read("jwt"), read("tokenKey")];
    if (typeof jwt === "string" && typeof tokenKey === "string") return { jwt, tokenKey };
    throw new StartError(`${path} is damaged; remove it to get new secrets`);
  }
  const secret = (): string => randomBytes(SECRET_BYTES).toString("base64url");
  const secrets = { jwt: secret(), tokenKey: secret() };
  await writeFile(path, `${JSON.stringify(secrets)}\n`, { mode: 0o600 });
  return secrets;
}

/** Through the same file, loader and checks as `walgate serve`. */
async function openGateway(cluster: Cluster, secrets: DevSecrets, from: Ports): Promise<Gateway> {
  const { startGateway } = await import("./compose.ts");
  const taken = new Set<number>();
  const http = await findFreePort(from.http, taken);
  taken.add(http);
  const postgres = await findFreePort(from.postgres, taken);
  const path = join(cluster.home, "walgate.toml");
  const text = devConfig(cluster, {
    http,
    postgres,
    issuer: DEV_ISSUER,
    audience: DEV_AUDIENCE,
  });
  await writeFile(path, text, { mode: 0o600 });
  const loaded = await loadConfig(
    path,
    {
      WALGATE_APP_PASSWORD: cluster.passwords.app,
      WALGATE_APP_USER_PASSWORD: cluster.passwords.app_user,
      WALGATE_MONITOR_PASSWORD: cluster.passwords.walgate_monitor,
      WALGATE_JWT_SECRET: secrets.jwt,
      WALGATE_TOKEN_KEY: secrets.tokenKey,
    },
    readTextFile,
  );
  if (!loaded.ok) throw new StartError(loaded.error.message);
  const gateway = await startGateway({
    config: loaded.config,
    log: createLogger({
      level: loaded.config.gateway.log_level,
      sink: (line) => process.stderr.write(line),
      nowMs: Date.now,
    }),
  });
  const { clusters, environment } = gateway.context;
  const deadline = environment.clock.now() + READY_TIMEOUT_MS;
  await Promise.all([...clusters.values()].map((database) => database.waitUntilReady(deadline)));
  return gateway;
}

/** The table of the printed commands, owned by `app` so that both roles may use it. */
async function prepareTable(cluster: Cluster): Promise<void> {
  await cluster.primary.sql(`
    CREATE TABLE IF NOT EXISTS notes (
      id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      body text NOT NULL
    );
    ALTER TABLE notes OWNER TO app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON notes TO app_user`);
  await caughtUp(cluster);
}
