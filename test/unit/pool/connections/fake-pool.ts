// Pools over connections without sockets: each open and each change of principal ends when the test says so.
import { ConnectionPools } from "#pool/connections/connection-pools.ts";
import type { LeaseRequest, PooledConnection } from "#pool/connections/pooled-connection.ts";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import type { OpenRequest } from "#pool/connections/user-pool-host.ts";
import type { Server } from "#pool/routing/server.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

export const RETRY_MS = 15_000;
export const CONNECT_TIMEOUT_MS = 5_000;

export function fakeServer(name: string): Server {
  return {
    name,
    address: { host: "127.0.0.1", port: 5432 },
    weight: 1,
    tls: { mode: "disable", ca: undefined },
    role: "primary",
    epoch: 0,
    leased: 0,
  };
}

export function fakeProfile(changes: Partial<StartupProfile> = {}): StartupProfile {
  return {
    name: "api",
    generation: 1,
    database: "shop",
    dbname: "shop",
    user: "app",
    password: undefined,
    parameters: {},
    isTrusted: true,
    poolMode: "transaction",
    defaultPoolSize: 2,
    queryWaitTimeoutMs: 2_000,
    waitQueueMax: 100,
    serverLifetimeMs: 3_600_000,
    serverIdleTimeoutMs: 600_000,
    serverConnectTimeoutMs: CONNECT_TIMEOUT_MS,
    cancelWaitTimeoutMs: 10_000,
    serverResetQuery: "DISCARD ALL",
    maxPreparedStatements: 200,
    consistencyWaitMs: 100,
    consistency: "session",
    ...changes,
  };
}

/** A promise that the test settles. */
interface Pending<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export class FakeConnection implements PooledConnection {
  readonly id: number;
  readonly server: Server;
  readonly profile: StartupProfile;
  readonly startupOptions: string;
  readonly createdAt: number;
  principal: string;
  isOpen = true;
  /** How often the pool has closed it. */
  closeCount = 0;
  onClosed: (() => void) | undefined = undefined;
  #rekey: { readonly principal: string; readonly pending: Pending<void> } | undefined;

  constructor(id: number, request: OpenRequest, createdAt: number) {
    this.id = id;
    this.server = request.server;
    this.profile = request.profile;
    this.principal = request.principal;
    this.startupOptions = request.startupOptions;
    this.createdAt = createdAt;
  }

  get isRekeying(): boolean {
    return this.#rekey !== undefined;
  }

  rekey(principal: string): Promise<void> {
    const pending = Promise.withResolvers<void>();
    this.#rekey = { principal, pending };
    return pending.promise;
  }

  finishRekey(): void {
    const rekey = this.#rekey;
    this.#rekey = undefined;
    this.principal = rekey?.principal ?? this.principal;
    rekey?.pending.resolve();
  }

  failRekey(): void {
    this.lose();
  }

  /** As the real one does: the callback comes at once, and an unfinished change of principal fails. */
  lose(): void {
    const { onClosed } = this;
    const rekey = this.#rekey;
    this.isOpen = false;
    this.onClosed = undefined;
    this.#rekey = undefined;
    onClosed?.();
    rekey?.pending.reject(new Error("connection lost"));
  }

  close(): void {
    this.closeCount += 1;
    this.lose();
  }
}

export interface FakeOpen {
  readonly request: OpenRequest;
  succeed(): FakeConnection;
  fail(error: unknown): void;
}

/** Lets what has been settled reach the pool. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await Promise.resolve();
  }
}

/** A request that writes down how it ended. */
export class FakeRequest implements LeaseRequest<FakeConnection> {
  readonly profile: StartupProfile;
  readonly principal: string;
  readonly startupOptions: string;
  readonly servers: readonly Server[];
  readonly deadline: number;
  readonly outcomes: (FakeConnection | Error)[] = [];
  onGranted: ((connection: FakeConnection) => void) | undefined;

  constructor(parts: {
    readonly servers: readonly Server[];
    readonly profile?: StartupProfile;
    readonly principal?: string;
    readonly startupOptions?: string;
    readonly deadline?: number;
  }) {
    this.servers = parts.servers;
    this.profile = parts.profile ?? fakeProfile();
    this.principal = parts.principal ?? "";
    this.startupOptions = parts.startupOptions ?? "";
    this.deadline = parts.deadline ?? 1_000_000_000;
  }

  granted(connection: FakeConnection): void {
    this.outcomes.push(connection);
    this.onGranted?.(connection);
  }

  refused(error: Error): void {
    this.outcomes.push(error);
  }
}

export class FakePool {
  readonly clock = new FakeClock();
  /** Not settled yet, the oldest first. */
  readonly opens: FakeOpen[] = [];
  readonly connections: FakeConnection[] = [];
  readonly pools: ConnectionPools<FakeConnection>;

  constructor() {
    this.pools = new ConnectionPools<FakeConnection>({
      clock: this.clock,
      serverLoginRetryMs: RETRY_MS,
      open: (request) => this.#open(request),
    });
  }

  /** Waits for the oldest open, which must exist, to succeed. */
  async succeed(): Promise<FakeConnection> {
    const connection = this.#nextOpen().succeed();
    await settle();
    return connection;
  }

  async fail(error: unknown): Promise<void> {
    this.#nextOpen().fail(error);
    await settle();
  }

  /** A connection on lease for a request like this one, opened if none is FREE. */
  async lease(request: FakeRequest): Promise<FakeConnection> {
    return this.pools.acquire(request) ?? (await this.succeed());
  }

  #nextOpen(): FakeOpen {
    const open = this.opens[0];
    if (open === undefined) {
      throw new Error("no open is in flight");
    }
    return open;
  }

  #open(request: OpenRequest): Promise<FakeConnection> {
    const { promise, resolve, reject } = Promise.withResolvers<FakeConnection>();
    const open: FakeOpen = {
      request,
      succeed: () => {
        this.opens.splice(this.opens.indexOf(open), 1);
        const id = this.connections.length + 1;
        const connection = new FakeConnection(id, request, this.clock.now());
        this.connections.push(connection);
        resolve(connection);
        return connection;
      },
      fail: (error) => {
        this.opens.splice(this.opens.indexOf(open), 1);
        reject(error);
      },
    };
    this.opens.push(open);
    return promise;
  }
}
