// Who the primary is, and the requests that wait until there is one.
import { hasSameHistory } from "../consistency/merge-positions.ts";
import type { PositionMonitor } from "../consistency/position-monitor.ts";
import type { ServerIdentity } from "../consistency/server-sample.ts";
import { PoolError } from "../errors.ts";
import type { Clock, Timer } from "../time/clock.ts";
import type { Server } from "./server.ts";

export interface PrimaryWatchOptions {
  readonly databaseName: string;
  readonly monitors: readonly PositionMonitor[];
  readonly clock: Clock;
  /** Two servers say that they are the primary; counted once until that ends. */
  readonly conflict: () => void;
}

interface Waiter {
  readonly timer: Timer;
  readonly resolve: (server: Server) => void;
  readonly reject: (error: PoolError) => void;
}

/** As many as clients may be connected by default: during a failover all of them may wait here. */
export const PRIMARY_WAITERS_MAX = 10_000;

export class PrimaryWatch {
  readonly #options: PrimaryWatchOptions;
  #present: PositionMonitor | undefined;
  #history: ServerIdentity | undefined;
  #hasConflict = false;
  #isStopped = false;
  readonly #waiters = new Set<Waiter>();

  constructor(options: PrimaryWatchOptions) {
    this.#options = options;
  }

  /** Undefined while none answers. */
  get present(): PositionMonitor | undefined {
    return this.presentAt(this.#options.clock.now());
  }

  /** As `present`, for callers who know what time it is. */
  presentAt(now: number): PositionMonitor | undefined {
    return this.#present?.sampleAt(now) === undefined ? undefined : this.#present;
  }

  /** Of the present primary, or of the last one: what replicas must share to serve reads. */
  get history(): ServerIdentity | undefined {
    return this.#history;
  }

  /** To be called after each change of a sample. Also writes the servers' roles. */
  update(): void {
    const primary = this.#choose();
    this.#present = primary;
    const identity = primary?.sample?.identity;
    if (identity !== undefined) this.#history = identity;
    for (const monitor of this.#options.monitors) {
      const sample = monitor.sample;
      if (sample === undefined) monitor.server.role = "unknown";
      else if (sample.isInRecovery) monitor.server.role = "replica";
      // One that lost against another primary serves nobody.
      else monitor.server.role = monitor === primary ? "primary" : "unknown";
    }
    if (primary === undefined) return;
    for (const waiter of this.#waiters) {
      this.#leave(waiter);
      waiter.resolve(primary.server);
    }
  }

  /** Rejects with PoolError ERR_NO_SERVER at the deadline, ERR_WAIT_QUEUE_FULL when too many wait. */
  when(deadline: number): Promise<Server> {
    const present = this.present;
    if (present !== undefined) return Promise.resolve(present.server);
    if (this.#isStopped) return Promise.reject(stopped());
    if (this.#waiters.size >= PRIMARY_WAITERS_MAX) return Promise.reject(this.#tooMany());
    const { clock } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Server>();
    const timer = clock.schedule(Math.max(0, deadline - clock.now()), () => {
      this.#leave(waiter);
      reject(this.#noPrimary());
    });
    const waiter: Waiter = { timer, resolve, reject };
    this.#waiters.add(waiter);
    return promise;
  }

  stop(): void {
    this.#isStopped = true;
    this.#present = undefined;
    for (const waiter of this.#waiters) {
      this.#leave(waiter);
      waiter.reject(stopped());
    }
  }

  /**
   * The higher timeline wins within one system: it was promoted later; one lower than was seen never serves again. Otherwise the one that is the primary
   * already keeps the role, else the first in the configuration.
   */
  #choose(): PositionMonitor | undefined {
    let best: PositionMonitor | undefined;
    let count = 0;
    for (const monitor of this.#options.monitors) {
      if (monitor.sample === undefined || monitor.sample.isInRecovery) continue;
      count++;
      if (this.#isDeposed(monitor.sample.identity)) continue;
      if (best === undefined || this.#isBetter(monitor, best)) best = monitor;
    }
    if (count > 1 && !this.#hasConflict) this.#options.conflict();
    this.#hasConflict = count > 1;
    return best;
  }

  /** Another was promoted after it: what it goes on to write is lost. */
  #isDeposed({ systemIdentifier, timeline }: ServerIdentity): boolean {
    const history = this.#history;
    return history?.systemIdentifier === systemIdentifier && timeline < history.timeline;
  }

  #isBetter(monitor: PositionMonitor, best: PositionMonitor): boolean {
    const a = monitor.sample?.identity;
    const b = best.sample?.identity;
    if (a === undefined || b === undefined) return b === undefined;
    const isPresent = monitor === this.#present;
    if (a.systemIdentifier !== b.systemIdentifier || hasSameHistory(a, b)) return isPresent;
    return a.timeline > b.timeline;
  }

  #leave(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    waiter.timer.cancel();
  }

  #noPrimary(): PoolError {
    const { databaseName, monitors } = this.#options;
    const cause = monitors.find((monitor) => monitor.lastError !== undefined)?.lastError;
    return new PoolError("ERR_NO_SERVER", `no primary is known for database "${databaseName}"`, {
      sqlState: "57P03",
      cause,
    });
  }

  #tooMany(): PoolError {
    const { databaseName } = this.#options;
    return new PoolError(
      "ERR_WAIT_QUEUE_FULL",
      `too many requests wait for a primary of database "${databaseName}"`,
      { sqlState: "53300" },
    );
  }
}

function stopped(): PoolError {
  return new PoolError("ERR_SHUTTING_DOWN", "the gateway is shutting down", { sqlState: "57P01" });
}
