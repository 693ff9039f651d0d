// Brings waiters and connections of one database and user together: reuses, changes the principal, opens, swaps, refuses.
import { PoolError } from "../errors.ts";
import type { PoolCounters } from "../stats/pool-counters.ts";
import type { ConnectionLedger } from "./connection-ledger.ts";
import { isPastLifetime } from "./limits.ts";
import type { PooledConnection } from "./pooled-connection.ts";
import type { PoolEntry, ServerConnections } from "./server-connections.ts";
import type { UserPoolHost } from "./user-pool-host.ts";
import type { Attempt, Waiter, WaitQueue } from "./wait-queue.ts";

/**
 * Invariant between any two operations: for each server, nobody in its queue without an attempt in flight
 * could be served by a FREE connection, or by a new one that the limit and the server's health allow.
 * It holds since whatever becomes available is offered to the queue first; so a new request that finds
 * something FREE overtakes nobody but those for whom a server that they prefer is opening one: server first,
 * then connection. Connections are closed after all changes of state: closing may call back.
 */
export class Dispatcher<C extends PooledConnection> {
  readonly #host: UserPoolHost<C>;
  readonly #ledger: ConnectionLedger<C>;
  readonly #queue: WaitQueue<C>;
  readonly #counters: PoolCounters;

  constructor(
    host: UserPoolHost<C>,
    ledger: ConnectionLedger<C>,
    queue: WaitQueue<C>,
    counters: PoolCounters,
  ) {
    this.#host = host;
    this.#ledger = ledger;
    this.#queue = queue;
    this.#counters = counters;
  }

  /** Starts, on one server, what will serve the waiter when no FREE connection has its key. False: no room there. */
  start(waiter: Waiter<C>, home: ServerConnections<C>, now: number): boolean {
    if (this.#queue.adoptOrphan(waiter, home)) {
      return true;
    }
    const related = home.takeFreeOfFamily(waiter.family);
    if (related !== undefined) {
      this.#rekey(related, waiter, now);
      return true;
    }
    if (!home.mayOpen(now)) {
      return false;
    }
    if (home.total < waiter.request.profile.defaultPoolSize) {
      this.#open(waiter, home, now);
      return true;
    }
    const coldest = home.takeColdest();
    if (coldest === undefined) {
      return false;
    }
    this.#swap(coldest, waiter, now);
    return true;
  }

  /** Nobody holds the entry: it goes to the first waiter that it fits, else it becomes FREE, or it is closed. */
  offer(entry: PoolEntry<C>, now: number): void {
    if (!this.#mayStay(entry, now)) {
      this.end(entry, now);
      return;
    }
    const { home, stack } = entry;
    // Nearly always, and without an iterator.
    const first = this.#queue.size > 0 ? this.#queue.firstOf(home) : undefined;
    if (first?.key === stack.key) {
      this.#grant(first, entry, now);
      return;
    }
    if (first !== undefined) {
      for (const waiter of this.#queue.of(home)) {
        if (waiter.key === stack.key) {
          this.#grant(waiter, entry, now);
          return;
        }
        if (waiter.attempt === undefined && waiter.family === stack.family) {
          this.#rekey(entry, waiter, now);
          return;
        }
        if (waiter.attempt === undefined && home.mayOpen(now)) {
          this.#swap(entry, waiter, now);
          return;
        }
      }
    }
    home.putFree(entry, now);
    this.#refuseHopeless(home, now);
  }

  /** Nobody holds the entry: its slot goes to the queue, and it is closed. */
  end(entry: PoolEntry<C>, now: number): void {
    this.#ledger.forget(entry);
    this.serveQueue(entry.home, now);
    entry.connection.close();
    this.#reportEnd();
  }

  /** A slot of the server is free, or it may be tried again. */
  serveQueue(home: ServerConnections<C>, now: number): void {
    for (const waiter of this.#queue.of(home)) {
      const isRoom = home.free > 0 || home.total < waiter.request.profile.defaultPoolSize;
      if (isRoom && waiter.attempt === undefined) {
        this.#serveOn(home, waiter, now);
      }
    }
    this.#refuseHopeless(home, now);
  }

  /** Why a waiter will not be served: no server may be tried yet, and nothing is in use or in the making. */
  hopelessness(waiter: Waiter<C>, now: number): Error | undefined {
    if (waiter.attempt !== undefined) {
      return undefined;
    }
    let error: Error | undefined;
    for (const home of waiter.homes) {
      if (home.used + home.opening > 0 || home.mayOpen(now)) {
        return undefined;
      }
      error ??= home.failure?.error;
    }
    return error;
  }

  #grant(waiter: Waiter<C>, entry: PoolEntry<C>, now: number): void {
    this.#ledger.lend(entry);
    this.#counters.assignments += 1;
    this.#queue.grant(waiter, entry.connection, now);
  }

  /** The slot changes hands: one closes, one opens, and their number stays, even where a reload has lowered the limit. */
  #swap(entry: PoolEntry<C>, waiter: Waiter<C>, now: number): void {
    this.#counters.evictions += 1;
    this.#ledger.forget(entry);
    this.#open(waiter, entry.home, now);
    entry.connection.close();
  }

  #open(waiter: Waiter<C>, home: ServerConnections<C>, now: number): void {
    const { profile, principal, startupOptions } = waiter.request;
    const { server } = home;
    const deadline = now + profile.serverConnectTimeoutMs;
    const opened = this.#host.open({ profile, principal, startupOptions, server, deadline });
    const attempt = this.#queue.beginAttempt(waiter, home);
    this.#counters.opens += 1;
    this.#host.connectionsExist();
    opened.then(
      (connection) => this.#opened(attempt, waiter.family, connection),
      (error: unknown) => this.#openFailed(attempt, toError(error)),
    );
  }

  #opened(attempt: Attempt<C>, family: string, connection: C): void {
    if (!connection.isOpen) {
      const message = "the connection to the server was lost right after login";
      const error = new PoolError("ERR_CONNECTION_LOST", message, { sqlState: "08006" });
      this.#openFailed(attempt, error);
      return;
    }
    const { home, key } = attempt;
    const now = this.#host.clock.now();
    const hadFailed = home.failure !== undefined;
    home.failure = undefined;
    const waiter = this.#queue.endAttempt(attempt);
    const isRetired = this.#host.isRetired(connection.profile);
    const entry = home.createEntry(connection, key, family, isRetired);
    this.#ledger.add(entry, () => this.#closedByItself(entry));
    this.#settle(entry, waiter, now);
    if (hadFailed) {
      this.serveQueue(home, now);
    }
    this.#host.deliveries.flush();
  }

  #openFailed(attempt: Attempt<C>, error: Error): void {
    const { home } = attempt;
    const now = this.#host.clock.now();
    this.#counters.openFailures += 1;
    home.failure = { error, retryAt: now + this.#host.serverLoginRetryMs };
    const waiter = this.#queue.endAttempt(attempt);
    if (waiter !== undefined) {
      this.#serve(waiter, now);
    }
    this.#refuseHopeless(home, now);
    this.#reportEnd();
    this.#host.deliveries.flush();
  }

  #rekey(entry: PoolEntry<C>, waiter: Waiter<C>, now: number): void {
    const { profile, principal } = waiter.request;
    entry.state = "rekeying";
    // It stands in for a login, so it may take as long as one.
    const rekeyed = entry.connection.rekey(principal, now + profile.serverConnectTimeoutMs);
    const attempt = this.#queue.beginAttempt(waiter, entry.home);
    this.#counters.rekeys += 1;
    rekeyed.then(
      () => this.#rekeyed(attempt, waiter.family, entry),
      () => this.#rekeyFailed(attempt, entry),
    );
  }

  #rekeyed(attempt: Attempt<C>, family: string, entry: PoolEntry<C>): void {
    if (!entry.connection.isOpen) {
      this.#rekeyFailed(attempt, entry);
      return;
    }
    const waiter = this.#queue.endAttempt(attempt);
    entry.home.changeKey(entry, attempt.key, family);
    this.#settle(entry, waiter, this.#host.clock.now());
    this.#host.deliveries.flush();
  }

  /** The connection has closed itself. The server may be well, so this doesn't count as a failed open. */
  #rekeyFailed(attempt: Attempt<C>, entry: PoolEntry<C>): void {
    const now = this.#host.clock.now();
    const waiter = this.#queue.endAttempt(attempt);
    this.#ledger.forget(entry);
    this.serveQueue(entry.home, now);
    this.#serveAgain(waiter, now);
    this.#reportEnd();
    this.#host.deliveries.flush();
  }

  /**
   * A connection has come for `waiter`, but serves the first whose key it has. Those of other keys don't get
   * it even if they came earlier: it would be closed before it has served anybody.
   */
  #settle(entry: PoolEntry<C>, waiter: Waiter<C> | undefined, now: number): void {
    const first = this.#firstOfKey(entry);
    if (first === undefined) {
      this.offer(entry, now);
    } else {
      this.#grant(first, entry, now);
    }
    this.#serveAgain(waiter, now);
  }

  #firstOfKey(entry: PoolEntry<C>): Waiter<C> | undefined {
    for (const waiter of this.#queue.of(entry.home)) {
      if (waiter.key === entry.stack.key) {
        return waiter;
      }
    }
    return undefined;
  }

  #mayStay({ connection, isRetired }: PoolEntry<C>, now: number): boolean {
    return (
      connection.isOpen && !isRetired && !this.#host.isClosing() && !isPastLifetime(connection, now)
    );
  }

  #closedByItself(entry: PoolEntry<C>): void {
    const now = this.#host.clock.now();
    if (entry.state === "free") {
      entry.home.removeFree(entry);
      this.#ledger.forget(entry);
      this.serveQueue(entry.home, now);
    } else if (entry.state === "used") {
      this.#ledger.lose(entry);
      this.serveQueue(entry.home, now);
      this.#reportEnd();
    }
    // While its principal changes, that promise says the same.
    this.#host.deliveries.flush();
  }

  #serveOn(home: ServerConnections<C>, waiter: Waiter<C>, now: number): boolean {
    const entry = home.takeFree(waiter.key);
    if (entry !== undefined) {
      this.#grant(waiter, entry, now);
      return true;
    }
    return this.start(waiter, home, now);
  }

  #serveAgain(waiter: Waiter<C> | undefined, now: number): void {
    if (waiter !== undefined && this.#queue.needsAttempt(waiter)) {
      this.#serve(waiter, now);
    }
  }

  /** Its attempt came to nothing for it: the same order of attempts as on arrival, at its place in the queue. */
  #serve(waiter: Waiter<C>, now: number): void {
    if (!waiter.homes.some((home) => this.#serveOn(home, waiter, now))) {
      const error = this.hopelessness(waiter, now);
      if (error !== undefined) {
        this.#queue.refuse(waiter, error, now);
      }
    }
  }

  #refuseHopeless(home: ServerConnections<C>, now: number): void {
    if (home.failure === undefined || home.used + home.opening > 0) {
      return;
    }
    for (const waiter of this.#queue.of(home)) {
      const error = this.hopelessness(waiter, now);
      if (error !== undefined) {
        this.#queue.refuse(waiter, error, now);
      }
    }
  }

  #reportEnd(): void {
    if (this.#host.isClosing()) {
      this.#host.connectionEnded();
    }
  }
}

function toError(error: unknown): Error {
  return error instanceof Error
    ? error
    : new PoolError("ERR_CONNECT_FAILED", "could not connect to the server", {
        sqlState: "08001",
        cause: error,
      });
}
