// Requests of one database and user that wait, in order of arrival, until they are granted, refused or abandoned.
import { PoolError } from "../errors.ts";
import type { PoolCounters } from "../stats/pool-counters.ts";
import type { Clock, Timer } from "../time/clock.ts";
import type { Deliveries } from "./deliveries.ts";
import type { LeaseRequest, PooledConnection } from "./pooled-connection.ts";
import type { ServerConnections } from "./server-connections.ts";
import { type Place, WaiterList } from "./waiter-list.ts";

export interface Waiter<C extends PooledConnection> {
  readonly request: LeaseRequest<C>;
  readonly key: string;
  readonly family: string;
  /** One per server of the request, in its order. */
  readonly homes: readonly ServerConnections<C>[];
  /** Clock milliseconds. */
  readonly queuedAt: number;
  /** At most one at a time: a waiter never occupies two slots. */
  attempt: Attempt<C> | undefined;
  /** One per home while it waits. */
  places: readonly Place<Waiter<C>>[];
  isWaiting: boolean;
  /** A lease that has begun for it, of which it may not have been told yet. */
  granted: C | undefined;
}

const NOWHERE: readonly [] = [];

/** An open or a change of principal in flight; it ends with a connection of this key. */
export interface Attempt<C extends PooledConnection> {
  readonly key: string;
  readonly home: ServerConnections<C>;
  /** Whom it was started for or has passed to; undefined once that one was served otherwise or left. */
  waiter: Waiter<C> | undefined;
}

/**
 *   one queue, a view per server:   arrival ─► w1   w2   w3   w4
 *                                   server a ─► w1 ───────► w3
 *                                   server b ─► w1 ─► w2 ───────► w4
 * A release on a server looks only at those whom that server may serve. The caller bounds the length.
 */
export class WaitQueue<C extends PooledConnection> {
  readonly #clock: Clock;
  readonly #deliveries: Deliveries;
  readonly #counters: PoolCounters;
  /** Those that wait, and those that have been decided about and not told yet. */
  readonly #byRequest = new Map<LeaseRequest<C>, Waiter<C>>();
  #size = 0;
  readonly #byHome = new Map<ServerConnections<C>, WaiterList<Waiter<C>>>();
  /** Attempts that nobody counts on: the next request that they fit takes one over. */
  readonly #orphans = new Set<Attempt<C>>();
  #timer: Timer | undefined;
  /** The earliest deadline that anybody may have, in clock milliseconds; those who left may have had it. */
  #watchedUntil = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, deliveries: Deliveries, counters: PoolCounters) {
    this.#clock = clock;
    this.#deliveries = deliveries;
    this.#counters = counters;
  }

  get size(): number {
    return this.#size;
  }

  /** @throws Error if the request waits already: a caller's bug. */
  createWaiter(
    request: LeaseRequest<C>,
    key: string,
    family: string,
    homes: readonly ServerConnections<C>[],
  ): Waiter<C> {
    if (this.#byRequest.has(request)) {
      throw new Error("acquire was called with a request that waits already");
    }
    const queuedAt = this.#clock.now();
    return {
      request,
      key,
      family,
      homes,
      queuedAt,
      attempt: undefined,
      places: NOWHERE,
      isWaiting: false,
      granted: undefined,
    };
  }

  add(waiter: Waiter<C>): void {
    this.#byRequest.set(waiter.request, waiter);
    this.#size += 1;
    waiter.isWaiting = true;
    waiter.places = waiter.homes.map((home) => {
      let list = this.#byHome.get(home);
      if (list === undefined) {
        list = new WaiterList<Waiter<C>>();
        this.#byHome.set(home, list);
      }
      return list.add(waiter);
    });
    this.#counters.waits += 1;
    this.#watch(waiter.request.deadline, waiter.queuedAt);
  }

  /** The lease has begun; the waiter is told when the deliveries are flushed. */
  grant(waiter: Waiter<C>, connection: C, now: number): void {
    this.#remove(waiter, now);
    waiter.granted = connection;
    const { request } = waiter;
    this.#deliveries.push(() => {
      if (this.#byRequest.get(request) === waiter) {
        this.#byRequest.delete(request);
        request.granted(connection);
      }
    });
  }

  /** The waiter is told when the deliveries are flushed. */
  refuse(waiter: Waiter<C>, error: Error, now: number): void {
    this.#remove(waiter, now);
    const { request } = waiter;
    this.#deliveries.push(() => {
      if (this.#byRequest.get(request) === waiter) {
        this.#byRequest.delete(request);
        request.refused(error);
      }
    });
  }

  /** The request gets no answer any more. Returns the connection that it was granted but not told of: a lease to end. */
  abandon(request: LeaseRequest<C>): C | undefined {
    const waiter = this.#byRequest.get(request);
    if (waiter?.isWaiting === true) {
      this.#remove(waiter, this.#clock.now());
    }
    this.#byRequest.delete(request);
    return waiter?.granted;
  }

  /** It waits, and nothing is under way for it. */
  needsAttempt(waiter: Waiter<C>): boolean {
    return waiter.attempt === undefined && waiter.isWaiting;
  }

  all(): Waiter<C>[] {
    return [...this.#byRequest.values()].filter(({ isWaiting }) => isWaiting);
  }

  /** In order of arrival; the waiter at hand may leave meanwhile, but no other. */
  of(home: ServerConnections<C>): Iterable<Waiter<C>> {
    return this.#byHome.get(home) ?? [];
  }

  /** Who came first of those in `of`. */
  firstOf(home: ServerConnections<C>): Waiter<C> | undefined {
    return this.#byHome.get(home)?.first;
  }

  isEmptyFor(home: ServerConnections<C>): boolean {
    return this.#byHome.get(home)?.isEmpty ?? true;
  }

  /** Nobody waits for it. */
  forgetHome(home: ServerConnections<C>): void {
    this.#byHome.delete(home);
  }

  beginAttempt(waiter: Waiter<C>, home: ServerConnections<C>): Attempt<C> {
    const attempt: Attempt<C> = { key: waiter.key, home, waiter };
    waiter.attempt = attempt;
    home.opening += 1;
    return attempt;
  }

  /** Returns the waiter that counted on it. */
  endAttempt(attempt: Attempt<C>): Waiter<C> | undefined {
    const { waiter, home } = attempt;
    home.opening -= 1;
    this.#orphans.delete(attempt);
    if (waiter !== undefined) {
      waiter.attempt = undefined;
    }
    return waiter;
  }

  /** Lets the waiter count on an attempt that has lost its own waiter. */
  adoptOrphan(waiter: Waiter<C>, home: ServerConnections<C>): boolean {
    for (const orphan of this.#orphans) {
      if (orphan.home === home && orphan.key === waiter.key) {
        this.#orphans.delete(orphan);
        orphan.waiter = waiter;
        waiter.attempt = orphan;
        return true;
      }
    }
    return false;
  }

  /** No timer is left behind where nobody waits. */
  stopWatching(): void {
    if (this.#size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#watchedUntil = Number.POSITIVE_INFINITY;
  }

  /** One timer for all: nearly every waiter is served long before its deadline, and would only start and stop its own. */
  #watch(deadline: number, now: number): void {
    if (deadline >= this.#watchedUntil) return;
    this.#timer?.cancel();
    this.#watchedUntil = deadline;
    this.#timer = this.#clock.schedule(Math.max(0, deadline - now), () => this.#timeOut());
  }

  #timeOut(): void {
    const now = this.#clock.now();
    this.#timer = undefined;
    this.#watchedUntil = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const waiter of this.all()) {
      const { deadline } = waiter.request;
      if (deadline <= now) this.#timedOut(waiter, now);
      else next = Math.min(next, deadline);
    }
    this.#watch(next, now);
    this.#deliveries.flush();
  }

  #timedOut(waiter: Waiter<C>, now: number): void {
    this.#counters.timeouts += 1;
    const error = new PoolError("ERR_QUERY_WAIT_TIMEOUT", "query_wait_timeout", {
      sqlState: "57014",
    });
    this.refuse(waiter, error, now);
  }

  /** Leaves no gap: those behind keep their order, and what was under way for it passes on. */
  #remove(waiter: Waiter<C>, now: number): void {
    waiter.isWaiting = false;
    this.#size -= 1;
    for (const place of waiter.places) {
      place.list.remove(place);
    }
    waiter.places = NOWHERE;
    this.#counters.waitMs += now - waiter.queuedAt;
    const { attempt } = waiter;
    if (attempt !== undefined) {
      waiter.attempt = undefined;
      this.#passOn(attempt);
    }
  }

  #passOn(attempt: Attempt<C>): void {
    for (const waiter of this.of(attempt.home)) {
      if (waiter.attempt === undefined && waiter.key === attempt.key) {
        attempt.waiter = waiter;
        waiter.attempt = attempt;
        return;
      }
    }
    attempt.waiter = undefined;
    this.#orphans.add(attempt);
  }
}
