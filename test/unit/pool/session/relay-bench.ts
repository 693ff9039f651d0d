// A relay with everything below it real but the servers: pools, classifier and plans as in the gateway, models of PostgreSQL behind sockets in memory.
import { BackendConnection } from "#pool/backend/backend-connection.ts";
import { ConnectionPools } from "#pool/connections/connection-pools.ts";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import type { Position } from "#pool/consistency/position.ts";
import type { PoolError } from "#pool/errors.ts";
import type { RouteRequest } from "#pool/routing/route-request.ts";
import type { Route, Server } from "#pool/routing/server.ts";
import { probeAfterSync } from "#pool/session/probe.ts";
import {
  type RelayClient,
  type RelayCluster,
  type RelayEnvironment,
  type RelayIdentity,
  newRelayCounters,
} from "#pool/session/relay-environment.ts";
import { Relay } from "#pool/session/relay.ts";
import { NO_PARAMETERS, type ParameterSet } from "#pool/session/startup-parameters.ts";
import { StatementRegistry } from "#pool/session/statement-registry.ts";
import { StatementClassifier } from "#pool/sql/statement-classifier.ts";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { FakeBackend, settled } from "#test/support/fake-backend.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import type { SocketPairOptions } from "#test/support/fake-socket.ts";
import { describeReplies } from "#test/support/wire-frames.ts";

export const PROFILE: StartupProfile = {
  name: "app",
  generation: 1,
  database: "shop",
  dbname: "shop",
  user: "app",
  password: undefined,
  parameters: {},
  isTrusted: true,
  poolMode: "transaction",
  defaultPoolSize: 1,
  queryWaitTimeoutMs: 5_000,
  waitQueueMax: 100,
  serverLifetimeMs: 3_600_000,
  serverIdleTimeoutMs: 600_000,
  serverConnectTimeoutMs: 5_000,
  cancelWaitTimeoutMs: 10_000,
  serverResetQuery: "DISCARD ALL",
  maxPreparedStatements: 200,
  consistencyWaitMs: 100,
  consistency: "session",
};

export const POSITION: Position = { systemIdentifier: 7n, timeline: 1, lsn: 0x3000060n };

function server(name: string, role: "primary" | "replica"): Server {
  return {
    name,
    address: { host: name, port: 5432 },
    weight: 1,
    tls: { mode: "disable", ca: undefined },
    role,
    epoch: 0,
    leased: 0,
  };
}

/** Routes as told, and counts what it is asked. */
export class FakeCluster implements RelayCluster {
  readonly primary: Server = server("primary", "primary");
  readonly replica: Server = server("replica", "replica");
  readonly requests: RouteRequest[] = [];
  hasReplica = false;
  /** A sample of the primary that is newer than every ticket. */
  sampled: Position | undefined;
  samplesWanted = 0;
  oracleCalls = 0;
  /** What the oracle is to do; undefined lets it answer POSITION. */
  oracleError: PoolError | undefined;
  verdict: ReturnType<RelayCluster["toPosition"]> = POSITION;
  probed: string[] = [];
  /** Set, the next routes are promises that the test settles. */
  waiting: PromiseWithResolvers<Route> | undefined;

  route(request: RouteRequest): Route | Promise<Route> {
    this.requests.push(request);
    if (this.waiting !== undefined) return this.waiting.promise;
    const mayBeReplica = request.access === "read" && request.consistency !== "primary";
    if (mayBeReplica && this.hasReplica) {
      return { role: "replica", servers: [this.replica], reason: "replica" };
    }
    const reason = request.access === "read" ? "no_replica" : (request.pinnedReason ?? "write");
    return { role: "primary", servers: [this.primary], reason };
  }

  covers(): boolean {
    return this.hasReplica;
  }

  ticket(): number {
    return 1;
  }

  sampledAfter(): Position | undefined {
    return this.sampled;
  }

  wantSample(): void {
    this.samplesWanted++;
  }

  probeMark(): undefined {
    return undefined;
  }

  toPosition(lsn: string): ReturnType<RelayCluster["toPosition"]> {
    this.probed.push(lsn);
    return this.verdict;
  }

  oracle(): Promise<Position> {
    this.oracleCalls++;
    return this.oracleError === undefined
      ? Promise.resolve(POSITION)
      : Promise.reject(this.oracleError);
  }
}

export class RelayBench {
  readonly clock = new FakeClock();
  readonly cluster = new FakeCluster();
  /** In the order in which they were opened. */
  readonly backends: FakeBackend[] = [];
  readonly connections: BackendConnection[] = [];
  readonly cancels: PromiseWithResolvers<void>[] = [];
  readonly bugs: unknown[] = [];
  readonly counters = newRelayCounters();
  readonly registry = new StatementRegistry();
  readonly environment: RelayEnvironment;
  readonly profile: StartupProfile;
  /** What the next opened backend is like. */
  socketOptions: SocketPairOptions = {};
  /** When set, opening fails with it. */
  openError: PoolError | undefined;
  /** When set, opening on the replica fails with it. */
  replicaOpenError: PoolError | undefined;

  constructor(
    profile: Partial<StartupProfile> = {},
    environment: Partial<Pick<RelayEnvironment, "output" | "placement">> = {},
  ) {
    this.profile = { ...PROFILE, ...profile };
    const pools = new ConnectionPools<BackendConnection>({
      clock: this.clock,
      serverLoginRetryMs: 1_000,
      open: async (request) => {
        if (this.openError !== undefined) throw this.openError;
        const isReplica = request.server === this.cluster.replica;
        if (isReplica && this.replicaOpenError !== undefined) throw this.replicaOpenError;
        const backend = new FakeBackend(this.socketOptions);
        this.backends.push(backend);
        const connection = new BackendConnection({
          ...request,
          socket: backend.socket,
          clock: this.clock,
          processId: this.backends.length,
          secretKey: new Uint8Array(4),
          parameters: new Map(),
          sendCancel: () => {
            const cancel = Promise.withResolvers<void>();
            this.cancels.push(cancel);
            return cancel.promise;
          },
        });
        this.connections.push(connection);
        return connection;
      },
    });
    this.environment = {
      clock: this.clock,
      pools,
      classifier: new StatementClassifier(),
      registry: this.registry,
      placement: probeAfterSync,
      output: { usedBytes: 0, bytesMax: 1_000_000_000 },
      clientReadTimeoutMs: 30_000,
      counters: this.counters,
      reportBug: (error) => this.bugs.push(error),
      ...environment,
    };
  }

  get identity(): RelayIdentity {
    return {
      profile: this.profile,
      cluster: this.cluster,
      principal: "",
      parameters: NO_PARAMETERS,
    };
  }

  connect(identity: Partial<RelayIdentity> = {}, positions: readonly Position[] = []): BenchClient {
    return new BenchClient(this.environment, { ...this.identity, ...identity }, positions);
  }

  /** The only backend so far. */
  get backend(): FakeBackend {
    const [backend] = this.backends;
    if (backend === undefined) throw new Error("no backend was opened yet");
    return backend;
  }

  /** Leases that were not given back. */
  get leased(): number {
    return this.environment.pools.snapshot().reduce((sum, { used }) => sum + used, 0);
  }

  /** Cancel requests on their way so far arrive. */
  async deliverCancels(): Promise<void> {
    for (const { resolve } of this.cancels) resolve();
    await settled();
  }
}

/** A client: bytes in as its socket would bring them, answers as lines. */
export class BenchClient implements RelayClient {
  readonly relay: Relay;
  readonly #splitter: FrameSplitter;
  readonly #environment: RelayEnvironment;
  #received: Uint8Array[] = [];
  #isReading = true;
  #unread = 0;
  /** `undefined` until the relay ends the session. */
  aborted: { readonly error: string[] } | undefined;

  constructor(
    environment: RelayEnvironment,
    identity: RelayIdentity,
    positions: readonly Position[],
  ) {
    this.#environment = environment;
    this.relay = new Relay(this, environment, identity, positions);
    this.#splitter = new FrameSplitter(
      {
        frame: (type, chunk, start, end) => this.relay.frame(type, chunk, start, end),
        largeStart: (type, prefix) => this.relay.largeStart(type, prefix),
        largeBytes: (bytes, isLast) => this.relay.largeBytes(bytes, isLast),
        violation: () => this.relay.leave(false),
      },
      16_777_216,
    );
  }

  get isSuspended(): boolean {
    return this.#splitter.isSuspended;
  }

  get queuedBytes(): number {
    return this.#unread;
  }

  /** All bytes so far. */
  get bytes(): Uint8Array {
    return concatBytes(this.#received);
  }

  /** Sends one chunk. */
  push(...parts: readonly Uint8Array[]): void {
    this.#splitter.push(concatBytes(parts));
    this.relay.endOfInput();
  }

  /** Sends one chunk and waits until all is quiet; the answers since the last call. */
  async send(...parts: readonly Uint8Array[]): Promise<string[]> {
    this.push(...parts);
    await settled();
    return this.answers();
  }

  /** Answers since the last call. */
  answers(): string[] {
    const answers = describeReplies(this.bytes);
    this.#received = [];
    return answers;
  }

  stopReading(): void {
    this.#isReading = false;
  }

  /** Takes all, or so many bytes of what waits. */
  read(bytes = Number.POSITIVE_INFINITY): void {
    const taken = Math.min(bytes, this.#unread);
    this.#count(-taken);
    if (this.#unread > 0) return;
    this.#isReading = true;
    this.relay.drained();
  }

  forward(bytes: Uint8Array): void {
    this.#received.push(bytes.slice());
    if (!this.#isReading) this.#count(bytes.length);
  }

  suspendInput(): void {
    this.#splitter.suspend();
  }

  resumeInput(): void {
    this.#splitter.resume();
    this.relay.endOfInput();
  }

  abort(error: Uint8Array | undefined): void {
    this.aborted = { error: error === undefined ? [] : describeReplies(error) };
  }

  #count(bytes: number): void {
    this.#unread += bytes;
    this.#environment.output.usedBytes += bytes;
  }
}

export function parametersOf(entries: Readonly<Record<string, string>>): ParameterSet {
  return { fingerprint: JSON.stringify(entries), entries: new Map(Object.entries(entries)) };
}
