// Builds the rooms and hands them to each other: the only place that knows them all.
import { Authenticator } from "#auth/authenticator.ts";
import { UserList } from "#auth/passwords/user-list.ts";
import { BackendConnection } from "#pool/backend/backend-connection.ts";
import { sendCancelRequest } from "#pool/backend/cancel-request.ts";
import { type ControlConnection, openControlConnection } from "#pool/backend/control-connection.ts";
import { loginToServer } from "#pool/backend/login.ts";
import { ConnectionPools } from "#pool/connections/connection-pools.ts";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import { PoolError } from "#pool/errors.ts";
import { TokenCodec } from "#pool/consistency/token.ts";
import { DatabaseCluster } from "#pool/routing/database-cluster.ts";
import type { Server } from "#pool/routing/server.ts";
import { Greetings } from "#pool/session/greeting.ts";
import { type ProbePlacement, probeAfterSync } from "#pool/session/probe.ts";
import { type RelayEnvironment, newRelayCounters } from "#pool/session/relay-environment.ts";
import { StatementRegistry } from "#pool/session/statement-registry.ts";
import { StatementClassifier, loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import type { Clock } from "#pool/time/clock.ts";
import { BunTransport } from "#pool/transport/bun-transport.ts";
import type { HostAddress } from "#pool/transport/socket.ts";
import type { Config, DatabaseConfig } from "./config/schema.ts";
import { type HttpListener, listenHttp } from "./http/listen-http.ts";
import { type WireDoor, openWireDoor } from "./postgres/wire-door.ts";
import { CancelRegistry } from "./session/cancel-registry.ts";
import { ClientCensus } from "./session/client-census.ts";
import type { GatewayContext } from "./session/gateway-context.ts";
import { RepeatedTexts } from "./session/repeated-texts.ts";
import { closeSessions, sweepIdleSessions } from "./session/session-sweep.ts";
import { toMonitorLogin, toProfiles } from "./startup-profiles.ts";
import type { Logger } from "./telemetry/logger.ts";

export interface GatewayOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Where the position probe stands; a test shows what a wrong place does. */
  readonly probePlacement?: ProbePlacement;
}

export interface Gateway {
  readonly http: HostAddress | undefined;
  readonly postgres: HostAddress | undefined;
  readonly context: GatewayContext;
  /** Nobody new; what runs may end within `shutdown_timeout`, then everything closes. */
  stop(): Promise<void>;
}

/** Opens the doors that the configuration names. Rejects, everything closed again, when one of them can't be opened. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, log } = options;
  await loadStatementParser();
  const clock = new SystemClock();
  const transport = new BunTransport(clock);
  const profiles = toProfiles(config);
  const clusters = toClusters(config, profiles, clock, transport, log);
  const pools = toPools(config, clock, transport, log);
  const context = toContext(options, { clock, transport, profiles, clusters, pools });
  for (const cluster of clusters.values()) cluster.start();
  const sweep = sweepIdleSessions(context);
  let wireDoor: WireDoor | undefined;
  let httpDoor: HttpListener | undefined;
  const close = async (): Promise<void> => {
    const deadline = clock.now() + config.gateway.shutdown_timeout * 1_000;
    wireDoor?.stop();
    sweep.stop();
    await httpDoor?.stop(deadline);
    await closeSessions(context, deadline);
    await pools.close(deadline);
    for (const cluster of clusters.values()) cluster.stop();
  };
  try {
    const { postgres, http } = config.gateway;
    if (postgres !== undefined) wireDoor = openWireDoor(context, transport, postgres);
    if (http !== undefined) httpDoor = listenHttp(context, http);
  } catch (error) {
    await close();
    throw error;
  }
  return { http: httpDoor?.address, postgres: wireDoor?.address, context, stop: close };
}

interface Parts {
  readonly clock: Clock;
  readonly transport: BunTransport;
  readonly profiles: ReadonlyMap<string, StartupProfile>;
  readonly clusters: ReadonlyMap<string, DatabaseCluster>;
  readonly pools: ConnectionPools<BackendConnection>;
}

function toContext(options: GatewayOptions, parts: Parts): GatewayContext {
  const { config, log } = options;
  const { clock, transport, profiles, clusters, pools } = parts;
  const environment: RelayEnvironment = {
    clock,
    pools,
    classifier: new StatementClassifier(),
    registry: new StatementRegistry(),
    placement: options.probePlacement ?? probeAfterSync,
    output: { usedBytes: 0, bytesMax: config.gateway.max_client_buffer },
    clientReadTimeoutMs: config.gateway.client_read_timeout * 1_000,
    counters: newRelayCounters(),
    reportBug: (error) => log.error("bug", { error }),
  };
  return {
    config,
    log,
    authenticator: toAuthenticator(config, profiles, transport, clock),
    environment,
    greetings: new Greetings(environment),
    repeatedTexts: new RepeatedTexts(config.http.prepare_threshold, (text) =>
      environment.classifier.classify(text),
    ),
    tokens: new TokenCodec({
      keys: config.tokens.keys.map((key) => new TextEncoder().encode(key.reveal())),
      wallNow: () => clock.wallNow(),
    }),
    cancels: new CancelRegistry({
      clock,
      workerId: config.gateway.worker_id,
      peerId: config.gateway.peer_id,
      randomBytes: (count) => transport.randomBytes(count),
    }),
    clients: new ClientCensus(config.gateway.max_client_conn, config.gateway.max_login_clients),
    sessions: new Set(),
    profiles,
    clusters,
  };
}

function toAuthenticator(
  config: Config,
  profiles: ReadonlyMap<string, StartupProfile>,
  transport: BunTransport,
  clock: Clock,
): Authenticator {
  const randomBytes = (count: number): Uint8Array => transport.randomBytes(count);
  const users = UserList.create(config.auth.users, randomBytes);
  if (!users.ok) throw new Error(users.problem);
  const databaseOf = (profile: string): string | undefined => profiles.get(profile)?.database;
  return new Authenticator({
    issuers: config.auth.jwt.map(({ issuer, audience, keys, algorithms }) => ({
      issuer,
      audiences: audience,
      keys: toIssuerKeys(keys),
      algorithms,
    })),
    rules: config.auth.rules,
    users: users.users,
    databaseOfProfile: databaseOf,
    defaultTenant: (profile) => databaseOf(profile) ?? profile,
    nowMs: () => clock.wallNow(),
    randomBytes,
    fetch: (url, init) => fetch(url, init),
  });
}

type IssuerKeys = ConstructorParameters<typeof Authenticator>[0]["issuers"][number]["keys"];

function toIssuerKeys(keys: Config["auth"]["jwt"][number]["keys"]): IssuerKeys {
  if (keys.kind === "secret") return keys;
  return keys.kind === "jwks"
    ? { kind: "inline", jwks: keys.jwks }
    : { kind: "remote", url: keys.url };
}

function toPools(
  config: Config,
  clock: Clock,
  transport: BunTransport,
  log: Logger,
): ConnectionPools<BackendConnection> {
  return new ConnectionPools<BackendConnection>({
    clock,
    serverLoginRetryMs: config.pool.server_login_retry * 1_000,
    open: async ({ profile, principal, startupOptions, server, deadline }) => {
      const { dbname, user, password, parameters } = profile;
      const login = { transport, clock, server, dbname, user, password, deadline };
      const { socket, processId, secretKey, ...loggedIn } = await loginToServer({
        ...login,
        parameters: { client_encoding: "UTF8", ...parameters },
      }).catch((error: unknown) => {
        throw loginFailure(error, { log, server: server.name, profile: profile.name });
      });
      const connection = new BackendConnection({
        socket,
        clock,
        server,
        profile,
        principal,
        startupOptions,
        processId,
        secretKey,
        parameters: loggedIn.parameters,
        sendCancel: (until) =>
          sendCancelRequest({ transport, clock, server, processId, secretKey, deadline: until }),
      });
      socket.resume();
      return connection;
    },
  });
}

function toClusters(
  config: Config,
  profiles: ReadonlyMap<string, StartupProfile>,
  clock: Clock,
  transport: BunTransport,
  log: Logger,
): ReadonlyMap<string, DatabaseCluster> {
  const clusters = new Map<string, DatabaseCluster>();
  for (const [name, database] of Object.entries(config.databases)) {
    const login = toMonitorLogin(name, database, profiles);
    if (login === undefined) throw new Error(`database "${name}" has no profile to watch it with`);
    clusters.set(
      name,
      new DatabaseCluster({
        name,
        servers: toServers(database),
        openControl: watched(log, name, (server, deadline) =>
          openControlConnection({ transport, clock, server, ...login, deadline }),
        ),
        clock,
        random: Math.random,
        counters: { count: (event) => log.debug("routing", { database: name, event }) },
      }),
    );
  }
  return clusters;
}

function toServers({ servers, sslmode, sslrootcert }: DatabaseConfig): readonly Server[] {
  return servers.map(({ name, address, weight }) => ({
    name,
    address,
    weight,
    tls: { mode: sslmode, ca: sslrootcert },
    role: "unknown",
    epoch: 0,
    leased: 0,
  }));
}

/**
 * The operator reads what the server said. A client does not: it would take a wrong password of the gateway's for its own, and learn
 * the gateway's role.
 */
function loginFailure(
  error: unknown,
  { log, ...where }: { readonly log: Logger; readonly server: string; readonly profile: string },
): unknown {
  log.warning("login to a server failed", { ...where, error });
  if (!(error instanceof PoolError) || error.code !== "ERR_SERVER_LOGIN_REFUSED") return error;
  // Too many connections, and a server that starts or stops, are no secret and pass.
  const isPassing = error.sqlState === "53300" || error.sqlState.startsWith("57P");
  const sqlState = isPassing ? error.sqlState : "08001";
  const message = "the gateway could not log in to the server";
  return new PoolError("ERR_SERVER_LOGIN_REFUSED", message, { sqlState, cause: error });
}

type OpenControl = (server: Server, deadline: number) => Promise<ControlConnection>;

/** Says once when a server can't be watched any more, and once when it can again. */
function watched(log: Logger, database: string, open: OpenControl): OpenControl {
  const unwatched = new Set<Server>();
  return async (server, deadline) => {
    try {
      const connection = await open(server, deadline);
      if (unwatched.delete(server)) {
        log.info("server is watched again", { database, server: server.name });
      }
      return connection;
    } catch (error) {
      if (!unwatched.has(server)) {
        log.warning("server can't be watched", { database, server: server.name, error });
      }
      unwatched.add(server);
      throw error;
    }
  };
}
