// One database and user: what its requests, leases, reloads and sweeps do to its connections and its queue.
import { PoolError } from "../errors.ts";
import { createPoolCounters, type PoolCounters } from "../stats/pool-counters.ts";
import { ConnectionLedger } from "./connection-ledger.ts";
import { Dispatcher } from "./dispatcher.ts";
import { isPastIdleTimeout, isPastLifetime } from "./limits.ts";
import { familyKeyOf, matchKeyOf } from "./match-key.ts";
import type { LeaseRequest, PooledConnection } from "./pooled-connection.ts";
import type { PoolEntry, ServerConnections } from "./server-connections.ts";
import type { UserPoolHost } from "./user-pool-host.ts";
import { type Waiter, WaitQueue } from "./wait-queue.ts";

/** One row per database, user and server. */
export interface PoolSnapshot {
  readonly database: string;
  readonly user: string;
  readonly server: string;
  readonly used: number;
  readonly free: number;
  /** Opens and changes of principal in flight. */
  readonly opening: number;
  /** Those that prefer this server, so that nobody is counted twice. */
  readonly waiting: number;
  /** How long the first of them has waited. */
  readonly maxWaitMs: number;
}

export class UserPool<C extends PooledConnection> {
  readonly database: string;
  readonly user: string;
  readonly counters: PoolCounters = createPoolCounters();

  readonly #host: UserPoolHost<C>;
  readonly #ledger = new ConnectionLedger<C>();
  readonly #queue: WaitQueue<C>;
  readonly #dispatcher: Dispatcher<C>;

  constructor(host: UserPoolHost<C>, database: string, user: string) {
    this.#host = host;
    this.database = database;
    this.user = user;
    this.#queue = new WaitQueue<C>(host.clock, host.deliveries, this.counters);
    this.#dispatcher = new Dispatcher<C>(host, this.#ledger, this.#queue, this.counters);
  }

  /** A connection is on lease or in the making. */
  get isBusy(): boolean {
    return this.#ledger.homes().some((home) => home.used + home.opening > 0);
  }

  /** See `ConnectionPools.acquire`. */
  acquire(request: LeaseRequest<C>): C | undefined {
    const family = familyKeyOf(request);
    const key = matchKeyOf(family, request.principal);
    // Even a request that opens a connection queues, so a full queue leaves only what is FREE now.
    const isFull = this.#queue.size >= request.profile.waitQueueMax;
    let waiter: Waiter<C> | undefined;
    for (const server of request.servers) {
      const home = this.#ledger.homeOf(server);
      const entry = home.takeFree(key);
      if (entry !== undefined) {
        this.#ledger.lend(entry);
        this.counters.assignments += 1;
        return entry.connection;
      }
      if (!isFull) {
        waiter ??= this.#createWaiter(request, key, family);
        if (this.#dispatcher.start(waiter, home, waiter.queuedAt)) {
          break;
        }
      }
    }
    this.#enqueue(waiter);
    return undefined;
  }

  abandon(request: LeaseRequest<C>): void {
    const granted = this.#queue.abandon(request);
    if (granted !== undefined) {
      this.release(granted);
    }
  }

  /** @throws Error if the connection is not on lease. */
  release(connection: C): void {
    const entry = this.#ledger.endLease(connection);
    if (entry !== undefined) {
      this.#dispatcher.offer(entry, this.#host.clock.now());
    }
  }

  /** @throws Error if the connection is not on lease. */
  discard(connection: C): void {
    const entry = this.#ledger.endLease(connection);
    if (entry !== undefined) {
      this.#dispatcher.end(entry, this.#host.clock.now());
    }
  }

  /** See `ConnectionPools.retire`. */
  retire(profileName: string, generation: number): void {
    const isOld = ({ connection: { profile } }: PoolEntry<C>): boolean =>
      profile.name === profileName && profile.generation < generation;
    for (const entry of this.#ledger.entries().filter(isOld)) {
      entry.isRetired = true;
    }
    const now = this.#host.clock.now();
    for (const home of this.#ledger.homes()) {
      this.#endFree(home, isOld, now);
    }
  }

  /** Closes what is past its time and tries failed servers again; true if something is left to watch. */
  sweep(now: number): boolean {
    const isPast = ({ connection, freedAt }: PoolEntry<C>): boolean =>
      isPastLifetime(connection, now) || isPastIdleTimeout(connection, freedAt, now);
    for (const home of this.#ledger.homes()) {
      this.#endFree(home, isPast, now);
      if (home.failure !== undefined) {
        this.#dispatcher.serveQueue(home, now);
      }
      // A failure outlives its retry time by as much again: a burst that follows tries one open, not many.
      const isRemembered =
        home.failure !== undefined && now < home.failure.retryAt + this.#host.serverLoginRetryMs;
      if (home.total === 0 && this.#queue.isEmptyFor(home) && !isRemembered) {
        this.#ledger.forgetHome(home);
        this.#queue.forgetHome(home);
      }
    }
    this.#queue.stopWatching();
    return this.#ledger.homes().length > 0;
  }

  /** Shutdown begins: those that wait are refused, what is FREE is closed. */
  drain(createError: () => PoolError): void {
    const now = this.#host.clock.now();
    for (const waiter of this.#queue.all()) {
      this.#queue.refuse(waiter, createError(), now);
    }
    this.#queue.stopWatching();
    for (const home of this.#ledger.homes()) {
      this.#endFree(home, () => true, now);
    }
  }

  /** Shutdown ends: connections on lease are closed; the leases stay to be given back. */
  closeUsed(): void {
    const used = this.#ledger.entries().filter((entry) => entry.state === "used");
    for (const entry of used) {
      this.#ledger.lose(entry);
    }
    for (const { connection } of used) {
      connection.close();
    }
  }

  snapshot(now: number): PoolSnapshot[] {
    return this.#ledger.homes().map((home) => {
      const waiters = [...this.#queue.of(home)].filter((waiter) => waiter.homes[0] === home);
      return {
        database: this.database,
        user: this.user,
        server: home.server.name,
        used: home.used,
        free: home.free,
        opening: home.opening,
        waiting: waiters.length,
        maxWaitMs: now - (waiters[0]?.queuedAt ?? now),
      };
    });
  }

  #createWaiter(request: LeaseRequest<C>, key: string, family: string): Waiter<C> {
    const homes = request.servers.map((server) => this.#ledger.homeOf(server));
    return this.#queue.createWaiter(request, key, family, homes);
  }

  #enqueue(waiter: Waiter<C> | undefined): void {
    if (waiter === undefined) {
      const message = "too many requests wait for a connection";
      throw new PoolError("ERR_WAIT_QUEUE_FULL", message, { sqlState: "53300" });
    }
    const error = this.#dispatcher.hopelessness(waiter, waiter.queuedAt);
    if (error !== undefined) {
      throw error;
    }
    this.#queue.add(waiter);
  }

  #endFree(
    home: ServerConnections<C>,
    isWanted: (entry: PoolEntry<C>) => boolean,
    now: number,
  ): void {
    for (const entry of home.freeEntries()) {
      // The slot of one that ends may cost another that is FREE its place meanwhile.
      if (entry.state === "free" && isWanted(entry)) {
        home.removeFree(entry);
        this.#dispatcher.end(entry, now);
      }
    }
  }
}
