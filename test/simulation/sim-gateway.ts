// One gateway instance over simulated servers: pools, routers, relays and tokens are the real ones, put together as in gateway/compose.ts.
import { BackendConnection } from "#pool/backend/backend-connection.ts";
import { sendCancelRequest } from "#pool/backend/cancel-request.ts";
import { type ControlConnection, openControlConnection } from "#pool/backend/control-connection.ts";
import { loginToServer } from "#pool/backend/login.ts";
import { ConnectionPools } from "#pool/connections/connection-pools.ts";
import type { LeaseRequest } from "#pool/connections/pooled-connection.ts";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import { TokenCodec } from "#pool/consistency/token.ts";
import { DatabaseCluster } from "#pool/routing/database-cluster.ts";
import type { Server } from "#pool/routing/server.ts";
import { probeAfterSync } from "#pool/session/probe.ts";
import {
  type RelayEnvironment,
  type RelayIdentity,
  newRelayCounters,
} from "#pool/session/relay-environment.ts";
import type { ParameterSet } from "#pool/session/startup-parameters.ts";
import { StatementRegistry } from "#pool/session/statement-registry.ts";
import type { StatementClassifier } from "#pool/sql/statement-classifier.ts";
import type { SeededRandom } from "#test/support/seeded-random.ts";
import type { Findings, Invariant } from "./findings.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import type { SimNetwork } from "./sim-network.ts";
import { PROFILES } from "./sim-profiles.ts";

const SERVER_LOGIN_RETRY_MS = 300;
const CLIENT_READ_TIMEOUT_MS = 3_000;
/** Unread answers over all clients. */
export const OUTPUT_BYTES_MAX = 4_000_000;
const TOKEN_KEY = new TextEncoder().encode("a key of the simulation, at least 32 bytes");

export interface SimGatewayOptions {
  readonly network: SimNetwork;
  readonly random: SeededRandom;
  readonly classifier: StatementClassifier;
  readonly serverNames: readonly string[];
  readonly findings: Findings;
  readonly bug: PlantedBug | undefined;
}

export class SimGateway {
  readonly environment: RelayEnvironment;
  readonly cluster: DatabaseCluster;
  readonly tokens: TokenCodec;
  readonly #servers: readonly Server[];
  readonly #findings: Findings;
  /** On lease, by our own count. */
  readonly #leased = new Set<BackendConnection>();

  constructor(options: SimGatewayOptions) {
    const { network, random, classifier, serverNames, findings, bug } = options;
    const { clock } = network;
    this.#findings = findings;
    this.#servers = serverNames.map(toServer);
    const pools = toPools(network);
    this.environment = {
      clock,
      pools,
      classifier,
      registry: new StatementRegistry(),
      placement: bug?.placement ?? probeAfterSync,
      output: { usedBytes: 0, bytesMax: OUTPUT_BYTES_MAX },
      clientReadTimeoutMs: CLIENT_READ_TIMEOUT_MS,
      counters: newRelayCounters(),
      reportBug: (error) => findings.report("no bug reported", String(error)),
    };
    this.#watchOwners(pools);
    bug?.plantInPools?.(pools, network);
    const openControl = (server: Server, deadline: number): Promise<ControlConnection> =>
      openControlConnection({
        transport: network,
        clock,
        server,
        dbname: "sim",
        user: "monitor",
        password: undefined,
        deadline,
      });
    this.cluster = new DatabaseCluster({
      name: "sim",
      servers: this.#servers,
      openControl: bug?.control?.(openControl) ?? openControl,
      clock,
      random: () => random.next(),
    });
    this.tokens = new TokenCodec({ keys: [TOKEN_KEY], wallNow: () => clock.wallNow() });
  }

  start(): void {
    this.cluster.start();
  }

  identity(profile: StartupProfile, principal: string, parameters: ParameterSet): RelayIdentity {
    return { profile, cluster: this.cluster, principal, parameters };
  }

  /** Whether the limits hold now. */
  checkLimits(): void {
    const limit = Math.max(...PROFILES.map(({ defaultPoolSize }) => defaultPoolSize));
    for (const row of this.environment.pools.snapshot()) {
      const total = row.used + row.free + row.opening;
      if (total > limit) {
        this.#findings.report(
          "limits held",
          `${total} connections of ${row.user} to ${row.server}`,
        );
      }
    }
  }

  /** What is left of clients; when all of them are gone nothing may be, soon. */
  get unrest(): readonly [Invariant, string] | undefined {
    const rows = this.environment.pools.snapshot();
    const used = rows.reduce((sum, row) => sum + row.used, 0);
    const waiting = rows.reduce((sum, row) => sum + row.waiting, 0);
    const leased = this.#servers.reduce((sum, server) => sum + server.leased, 0);
    const { usedBytes } = this.environment.output;
    if (used > 0) return ["one owner", `${used} leases were never given back`];
    if (waiting > 0) return ["no waiter forgotten", `${waiting} wait for nobody`];
    if (leased !== 0) return ["one owner", `servers count ${leased} leases`];
    return usedBytes === 0 ? undefined : ["limits held", `${usedBytes} unread bytes are left`];
  }

  /** Our own count of who has what, beside the pool's. */
  #watchOwners(pools: ConnectionPools<BackendConnection>): void {
    const lend = (connection: BackendConnection): void => {
      if (this.#leased.has(connection)) {
        this.#findings.report("one owner", `server process ${connection.processId} was lent twice`);
      }
      this.#leased.add(connection);
    };
    const acquire = pools.acquire.bind(pools);
    pools.acquire = (request: LeaseRequest<BackendConnection>) => {
      const granted = request.granted.bind(request);
      request.granted = (connection) => {
        lend(connection);
        granted(connection);
      };
      const connection = acquire(request);
      if (connection !== undefined) lend(connection);
      return connection;
    };
    for (const method of ["release", "discard"] as const) {
      const original = pools[method].bind(pools);
      pools[method] = (connection) => {
        this.#leased.delete(connection);
        original(connection);
      };
    }
  }
}

function toServer(name: string): Server {
  return {
    name,
    address: { host: name, port: 5432 },
    weight: 1,
    tls: { mode: "disable", ca: undefined },
    role: "unknown",
    epoch: 0,
    leased: 0,
  };
}

function toPools(network: SimNetwork): ConnectionPools<BackendConnection> {
  const { clock } = network;
  return new ConnectionPools<BackendConnection>({
    clock,
    serverLoginRetryMs: SERVER_LOGIN_RETRY_MS,
    open: async ({ profile, principal, startupOptions, server, deadline }) => {
      const { dbname, user, password, parameters } = profile;
      const { socket, processId, secretKey, ...loggedIn } = await loginToServer({
        transport: network,
        clock,
        server,
        dbname,
        user,
        password,
        deadline,
        parameters: { client_encoding: "UTF8", ...parameters },
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
          sendCancelRequest({
            transport: network,
            clock,
            server,
            processId,
            secretKey,
            deadline: until,
          }),
      });
      socket.resume();
      return connection;
    },
  });
}
