// The owner of every backend connection: leases by database, user and server, reload, shutdown, figures.
import { PoolError } from "../errors.ts";
import type { PoolCounters } from "../stats/pool-counters.ts";
import type { Clock, Timer } from "../time/clock.ts";
import { Deliveries } from "./deliveries.ts";
import { Janitor } from "./janitor.ts";
import type { LeaseRequest, PooledConnection } from "./pooled-connection.ts";
import type { StartupProfile } from "./startup-profile.ts";
import { type PoolSnapshot, UserPool } from "./user-pool.ts";
import type { OpenRequest } from "./user-pool-host.ts";

export interface ConnectionPoolsOptions<C extends PooledConnection> {
  readonly clock: Clock;
  /** Opens and logs in by the deadline; rejects with a PoolError. */
  readonly open: (request: OpenRequest) => Promise<C>;
  /**
   * How long, after a failed open, no other is tried for that server and user; then one at a time until one
   * succeeds. PgBouncer's `server_login_retry`.
   */
  readonly serverLoginRetryMs: number;
}

/** The counters of one database and user, live. */
export interface PoolStatistics {
  readonly database: string;
  readonly user: string;
  readonly counters: Readonly<PoolCounters>;
}

/**
 * Callbacks of requests (`granted`, `refused`) run after all changes of state, one after the other: inside a
 * release, discard, abandon, retire or close, or from a timer or a settled promise; never inside `acquire`.
 */
export class ConnectionPools<C extends PooledConnection> {
  readonly #clock: Clock;
  readonly #deliveries = new Deliveries();
  readonly #janitor: Janitor;
  readonly #createPool: (profile: StartupProfile) => UserPool<C>;
  readonly #pools = new Map<string, UserPool<C>>();
  // Spares the hot path the string key.
  readonly #poolOfProfile = new WeakMap<StartupProfile, UserPool<C>>();
  /** The oldest generation per profile name that may still be reused. */
  readonly #generations = new Map<string, number>();
  #closing: PromiseWithResolvers<void> | undefined;
  #closeTimer: Timer | undefined;

  constructor({ clock, open, serverLoginRetryMs }: ConnectionPoolsOptions<C>) {
    this.#clock = clock;
    this.#janitor = new Janitor(clock, (now) => this.#sweep(now));
    const host = {
      clock,
      deliveries: this.#deliveries,
      serverLoginRetryMs,
      open,
      isClosing: () => this.#closing !== undefined,
      isRetired: ({ name, generation }: StartupProfile) =>
        generation < (this.#generations.get(name) ?? 0),
      connectionsExist: () => this.#janitor.start(),
      connectionEnded: () => this.#finishWhenIdle(),
    };
    this.#createPool = ({ database, user }) => new UserPool<C>(host, database, user);
  }

  /**
   * A lease at once, or undefined: the request waits, and one of its callbacks is called later. Servers are
   * tried in order; on each: a FREE connection of the same key, one of another principal, a new one, and at
   * the limit a new one in the place of the least recently used FREE one.
   * @throws PoolError if it is refused at once: the queue is full (53300), the pools are closing (57P01), or its
   *   servers have just failed to open a connection and there is none in use to wait for (that error).
   */
  acquire(request: LeaseRequest<C>): C | undefined {
    if (this.#closing !== undefined) {
      throw createShutdownError();
    }
    return this.#poolOf(request.profile).acquire(request);
  }

  /** A waiter gives up: it is not called back any more. Without effect once it has been called back. */
  abandon(request: LeaseRequest<C>): void {
    this.#poolOfProfile.get(request.profile)?.abandon(request);
    this.#deliveries.flush();
  }

  /**
   * Ends a lease. The connection is idle and clean, or has closed.
   * @throws Error if it is not on lease: given back twice, or unknown.
   */
  release(connection: C): void {
    this.#ownerOf(connection).release(connection);
    this.#deliveries.flush();
  }

  /**
   * Ends a lease by closing the connection.
   * @throws Error if it is not on lease: given back twice, or unknown.
   */
  discard(connection: C): void {
    this.#ownerOf(connection).discard(connection);
    this.#deliveries.flush();
  }

  /**
   * After a reload: no connection of an older generation of this profile is reused. FREE ones close now, those
   * on lease when they are released. For a profile that is gone: Infinity.
   */
  retire(profileName: string, generation: number): void {
    this.#generations.set(profileName, generation);
    for (const pool of this.#pools.values()) {
      pool.retire(profileName, generation);
    }
    this.#deliveries.flush();
  }

  /**
   * Shutdown: refuses what waits and what comes (57P01), closes FREE connections at once and the others when
   * they are given back, or at the deadline (clock milliseconds). Resolves when all are closed.
   */
  close(deadline: number): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = Promise.withResolvers<void>();
      this.#janitor.stop();
      const delayMs = Math.max(0, deadline - this.#clock.now());
      this.#closeTimer = this.#clock.schedule(delayMs, () => this.#closeUsed());
      for (const pool of this.#pools.values()) {
        pool.drain(createShutdownError);
      }
      this.#finishWhenIdle();
      this.#deliveries.flush();
    }
    return this.#closing.promise;
  }

  snapshot(): readonly PoolSnapshot[] {
    const now = this.#clock.now();
    return [...this.#pools.values()].flatMap((pool) => pool.snapshot(now));
  }

  statistics(): readonly PoolStatistics[] {
    return [...this.#pools.values()].map(({ database, user, counters }) => ({
      database,
      user,
      counters,
    }));
  }

  #poolOf(profile: StartupProfile): UserPool<C> {
    const known = this.#poolOfProfile.get(profile);
    if (known !== undefined) {
      return known;
    }
    const key = JSON.stringify([profile.database, profile.user]);
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = this.#createPool(profile);
      this.#pools.set(key, pool);
    }
    this.#poolOfProfile.set(profile, pool);
    return pool;
  }

  #ownerOf(connection: C): UserPool<C> {
    const pool = this.#poolOfProfile.get(connection.profile);
    if (pool === undefined) {
      throw new Error("a connection was given back that no pool has opened");
    }
    return pool;
  }

  #sweep(now: number): boolean {
    let isLeft = false;
    for (const pool of this.#pools.values()) {
      isLeft = pool.sweep(now) || isLeft;
    }
    this.#deliveries.flush();
    return isLeft;
  }

  #finishWhenIdle(): void {
    if (![...this.#pools.values()].some((pool) => pool.isBusy)) {
      this.#finish();
    }
  }

  #closeUsed(): void {
    for (const pool of this.#pools.values()) {
      pool.closeUsed();
    }
    // An open in flight has its own deadline; its connection is closed when it comes.
    this.#finish();
  }

  #finish(): void {
    this.#closeTimer?.cancel();
    this.#closing?.resolve();
  }
}

function createShutdownError(): PoolError {
  return new PoolError("ERR_SHUTTING_DOWN", "the gateway is shutting down", { sqlState: "57P01" });
}
