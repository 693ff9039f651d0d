// Where reads wait for a replica to replay what they have to see; the first replica that has it lets them go.
import type { Server } from "../routing/server.ts";
import type { Clock, Timer } from "../time/clock.ts";

/** `unfit`: no longer worth waiting for, as its replay is paused or its monitor lost. */
export type ReplayProgress = "reached" | "behind" | "unfit";

export interface ReadGateOptions {
  readonly clock: Clock;
  readonly progress: (server: Server, lsn: bigint) => ReplayProgress;
  /** Somebody has begun to wait for this server. */
  readonly joined: (server: Server) => void;
  /** A read was turned away because too many wait. */
  readonly full: () => void;
}

interface Waiter {
  readonly lsn: bigint;
  readonly servers: Set<Server>;
  readonly timer: Timer;
  readonly resolve: (isReached: boolean) => void;
}

/** All of a server's waiters are looked at with each of its samples, up to once in a millisecond. */
export const GATE_WAITERS_PER_SERVER_MAX = 1_024;
/** A read that finds no place costs the primary a read; one that waits costs memory for the whole budget. */
export const GATE_WAITERS_MAX = 4_096;

export class ReadGate {
  readonly #options: ReadGateOptions;
  readonly #waiters = new Set<Waiter>();
  readonly #byServer = new Map<Server, Set<Waiter>>();

  constructor(options: ReadGateOptions) {
    this.#options = options;
  }

  /** True once one of the servers has replayed `lsn`; false after `waitMs`, at once when full, or when none is fit any more. */
  wait(servers: readonly Server[], lsn: bigint, waitMs: number): Promise<boolean> {
    const open = servers.filter((server) => this.count(server) < GATE_WAITERS_PER_SERVER_MAX);
    if (open.length === 0 || this.#waiters.size >= GATE_WAITERS_MAX) {
      this.#options.full();
      return Promise.resolve(false);
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = this.#options.clock.schedule(waitMs, () => this.#settle(waiter, false));
    const waiter: Waiter = { lsn, servers: new Set(open), timer, resolve };
    this.#waiters.add(waiter);
    for (const server of open) {
      const waiters = this.#byServer.get(server);
      if (waiters === undefined) this.#byServer.set(server, new Set([waiter]));
      else waiters.add(waiter);
      this.#options.joined(server);
    }
    return promise;
  }

  /** Waiters of one server. */
  count(server: Server): number {
    return this.#byServer.get(server)?.size ?? 0;
  }

  /** To be called after each sample of the server and when what was known of it is gone. */
  serverChanged(server: Server): void {
    for (const waiter of this.#byServer.get(server) ?? []) {
      const progress = this.#options.progress(server, waiter.lsn);
      if (progress === "reached") this.#settle(waiter, true);
      else if (progress === "unfit") this.#leave(waiter, server);
    }
  }

  /** Lets everybody go unserved. */
  clear(): void {
    for (const waiter of this.#waiters) this.#settle(waiter, false);
  }

  #leave(waiter: Waiter, server: Server): void {
    waiter.servers.delete(server);
    this.#byServer.get(server)?.delete(waiter);
    if (waiter.servers.size === 0) this.#settle(waiter, false);
  }

  #settle(waiter: Waiter, isReached: boolean): void {
    if (!this.#waiters.delete(waiter)) return;
    waiter.timer.cancel();
    for (const server of waiter.servers) this.#byServer.get(server)?.delete(waiter);
    waiter.resolve(isReached);
  }
}
