// Starts a real gateway in this process in front of a test cluster, on ports of its own.
import { SignJWT } from "jose";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { type Gateway, type GatewayOptions, startGateway } from "#gateway/compose.ts";
import { loadConfig } from "#gateway/config/load.ts";
import { createLogger } from "#gateway/telemetry/logger.ts";
import { CERTIFICATE_PEM, PRIVATE_KEY_PEM } from "#test/fixtures/tls-fixture.ts";

const ISSUER = "https://issuer.test";
const AUDIENCE = "walgate";
const JWT_SECRET = "a secret of the tests, at least 32 bytes long";

/** What the configuration may name, and no disk has. */
const FILES: ReadonlyMap<string, string> = new Map([
  ["/test/cert.pem", CERTIFICATE_PEM],
  ["/test/key.pem", PRIVATE_KEY_PEM],
]);
const TLS = 'tls = { cert_file = "/test/cert.pem", key_file = "/test/key.pem" }';

export interface TestGatewayOptions {
  /** TOML of further sections, or of keys: `{ gateway: "max_client_conn = 5" }` adds to that section. */
  readonly sections?: Readonly<Record<string, string>>;
  /** TOML behind everything else: whole sections. */
  readonly extra?: string;
  /** Order and choice of servers; default: replica, primary, replica, so that roles must be found. */
  readonly servers?: readonly string[];
  readonly probePlacement?: NonNullable<GatewayOptions["probePlacement"]>;
  readonly env?: Readonly<Record<string, string>>;
  /** The doors offer TLS, with the certificate of `tls-fixture.ts`. */
  readonly tls?: boolean;
}

export interface TestGateway extends AsyncDisposable {
  /** Base URL of the HTTP door. */
  readonly http: string;
  readonly postgres: { readonly host: string; readonly port: number };
  readonly gateway: Gateway;
  /** Lines of the log so far. */
  readonly log: readonly string[];
  /** A connection URL of the wire door for a SCRAM user. */
  url(user?: "app" | "app_user"): string;
  /** A JWT. `role: "service"` (default) leads to the trusted profile, `authenticated` to the untrusted one. */
  token(claims?: Readonly<Record<string, unknown>>, expiresInSeconds?: number): Promise<string>;
  stop(): Promise<void>;
}

/** Profiles `server` (user app, trusted) and `app` (user app_user, untrusted), both of the database `app`; users app and app_user log in by SCRAM. */
export async function testGateway(
  cluster: Cluster,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const lines: string[] = [];
  const loaded = await loadConfig(
    "walgate.toml",
    {
      APP_PASSWORD: cluster.passwords.app,
      APP_USER_PASSWORD: cluster.passwords.app_user,
      MONITOR_PASSWORD: cluster.passwords.walgate_monitor,
      JWT_SECRET,
      TOKEN_KEY: "one token key for all gateways of a test, 32 bytes",
      ...options.env,
    },
    async (path) => FILES.get(path) ?? toml(cluster, options),
  );
  if (!loaded.ok) throw loaded.error;
  const gateway = await startGateway({
    config: loaded.config,
    log: createLogger({ level: "debug", sink: (line) => lines.push(line), nowMs: Date.now }),
    ...(options.probePlacement === undefined ? {} : { probePlacement: options.probePlacement }),
  });
  const { clusters, environment } = gateway.context;
  for (const database of clusters.values()) {
    await database.waitUntilReady(environment.clock.now() + 20_000);
  }
  const { http, postgres } = gateway;
  if (http === undefined || postgres === undefined) throw new Error("a door is closed");
  const stop = (): Promise<void> => gateway.stop();
  return {
    http: `http://127.0.0.1:${http.port}`,
    postgres,
    gateway,
    log: lines,
    url: (user = "app") =>
      `postgres://${user}:${cluster.passwords[user]}@127.0.0.1:${postgres.port}/app`,
    token: (claims = {}, expiresInSeconds = 600) =>
      new SignJWT({ role: "service", ...claims })
        .setProtectedHeader({ alg: "HS256" })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(typeof claims["sub"] === "string" ? claims["sub"] : "tester")
        .setExpirationTime(Math.floor(Date.now() / 1_000) + expiresInSeconds)
        .sign(new TextEncoder().encode(JWT_SECRET)),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function toml(cluster: Cluster, options: TestGatewayOptions): string {
  const [first, second] = cluster.replicas;
  const nodes = [first, cluster.primary, second].filter((node) => node !== undefined);
  const servers =
    options.servers ??
    nodes.map(({ name, port }) => `{ name = "${name}", address = "127.0.0.1:${port}" }`);
  const section = (name: string): string => options.sections?.[name] ?? "";
  return `
[gateway]
http = "127.0.0.1:0"
postgres = "127.0.0.1:0"
shutdown_timeout = 2
${options.tls === true ? TLS : ""}
${section("gateway")}
[http]
${section("http")}
[pool]
${section("pool")}
[tokens]
keys = [{ secret_env = "TOKEN_KEY" }]
[databases.app]
servers = [${servers.join(", ")}]
monitor_user = "walgate_monitor"
monitor_password_env = "MONITOR_PASSWORD"
sslmode = "disable"
${section("databases.app")}
[profiles.server]
database = "app"
user = "app"
password_env = "APP_PASSWORD"
sql = "trusted"
${section("profiles.server")}
[profiles.app]
database = "app"
user = "app_user"
password_env = "APP_USER_PASSWORD"
${section("profiles.app")}
[[auth.users]]
name = "app"
secret_env = "APP_PASSWORD"
[[auth.users]]
name = "app_user"
secret_env = "APP_USER_PASSWORD"
[[auth.jwt]]
issuer = "${ISSUER}"
audience = "${AUDIENCE}"
secret_env = "JWT_SECRET"
[[auth.rules]]
method = "scram-sha-256"
user = "app"
profile = "server"
[[auth.rules]]
method = "scram-sha-256"
user = "app_user"
profile = "app"
[[auth.rules]]
method = "jwt"
issuer = "${ISSUER}"
claims = { role = "service" }
profile = "server"
[[auth.rules]]
method = "jwt"
issuer = "${ISSUER}"
claims = { role = "authenticated" }
profile = "app"
${options.extra ?? ""}
`;
}
