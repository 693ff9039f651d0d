// Asks the primary for its position now, over a connection of its own, for everybody who wants to know at once.
import type { ControlConnection } from "../backend/control-connection.ts";
import { PoolError } from "../errors.ts";
import type { Server } from "../routing/server.ts";
import type { Clock, Timer } from "../time/clock.ts";
import type { OpenControl } from "./position-monitor.ts";
import type { Position } from "./position.ts";
import {
  IDENTITY_QUERY,
  parseServerReading,
  SAMPLE_QUERY,
  usableLsn,
  type ServerIdentity,
} from "./server-sample.ts";

export interface PositionOracleOptions {
  readonly openControl: OpenControl;
  readonly clock: Clock;
  /** The present primary, waited for if there is none; rejects at the deadline. */
  readonly whenPrimary: (deadline: number) => Promise<Server>;
}

interface Caller {
  readonly timer: Timer;
  readonly resolve: (position: Position) => void;
  readonly reject: (error: unknown) => void;
}

interface Link {
  readonly server: Server;
  readonly connection: ControlConnection;
  /** Known after the first answer. A running primary changes neither, and a restart ends the connection. */
  identity: ServerIdentity | undefined;
}

/** One question; a caller gives up at its own deadline, which never closes the connection for the others. */
const QUESTION_TIMEOUT_MS = 5_000;
/** As many as clients may be connected by default; each holds a timer and a promise. */
export const ORACLE_CALLERS_MAX = 10_000;

export class PositionOracle {
  readonly #options: PositionOracleOptions;
  /** Whose question has not been sent yet. */
  #callers = new Set<Caller>();
  /** Who waits for the answer that is on its way. */
  #asking = new Set<Caller>();
  #callerCount = 0;
  #isRunning = false;
  #isStopped = false;
  #link: Link | undefined;

  constructor(options: PositionOracleOptions) {
    this.#options = options;
  }

  /**
   * A position of the primary that was read after this call: it covers everything that was committed before.
   * One question is in flight at a time; who comes while it is shares the next one, because the running one
   * may have been answered before the caller's commit.
   *
   * @throws PoolError 57014 at the deadline, 57P03 without a primary, 53300 when too many ask, and what the
   *   connection to the primary failed with.
   */
  read(deadline: number): Promise<Position> {
    if (this.#isStopped) return Promise.reject(stopped());
    if (this.#callerCount >= ORACLE_CALLERS_MAX) {
      return Promise.reject(
        new PoolError("ERR_LIMIT_EXCEEDED", "too many requests wait for the primary's position", {
          sqlState: "53300",
        }),
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<Position>();
    const { clock } = this.#options;
    const timer = clock.schedule(Math.max(0, deadline - clock.now()), () => {
      this.#callers.delete(caller);
      this.#asking.delete(caller);
      this.#reject([caller], timedOut());
    });
    const caller: Caller = { timer, resolve, reject };
    this.#callers.add(caller);
    this.#callerCount++;
    void promise.then(this.#callerLeft, this.#callerLeft);
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  stop(): void {
    this.#isStopped = true;
    this.#unlink();
    this.#reject([...this.#asking, ...this.#callers], stopped());
    this.#asking.clear();
    this.#callers.clear();
  }

  readonly #callerLeft = (): void => {
    this.#callerCount--;
  };

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#callers.size > 0) await this.#runOnce();
    this.#isRunning = false;
  }

  async #runOnce(): Promise<void> {
    const deadline = this.#options.clock.now() + QUESTION_TIMEOUT_MS;
    let isReused = false;
    let isSent = false;
    try {
      const server = await this.#options.whenPrimary(deadline);
      isReused = this.#isLinkedTo(server);
      const link = isReused ? this.#link : await this.#connect(server, deadline);
      if (link === undefined) throw stopped();
      this.#asking = this.#callers;
      this.#callers = new Set();
      isSent = true;
      const position = await this.#ask(link, deadline);
      for (const caller of this.#asking) {
        caller.timer.cancel();
        caller.resolve(position);
      }
    } catch (error) {
      this.#unlink();
      const failed = isSent ? this.#asking : this.#callers;
      // A connection that broke while nobody used it is not the primary's last word: ask again on a new one.
      if (isReused) this.#callers = new Set([...failed, ...this.#callers]);
      else this.#reject(failed, error);
    }
    this.#asking.clear();
  }

  #isLinkedTo(server: Server): boolean {
    return this.#link?.server === server && this.#link.connection.isOpen;
  }

  async #connect(server: Server, deadline: number): Promise<Link | undefined> {
    this.#unlink();
    const connection = await this.#options.openControl(server, deadline);
    if (this.#isStopped) {
      connection.close();
      return undefined;
    }
    this.#link = { server, connection, identity: undefined };
    return this.#link;
  }

  async #ask(link: Link, deadline: number): Promise<Position> {
    const withIdentity = link.identity === undefined;
    const text = withIdentity ? IDENTITY_QUERY : SAMPLE_QUERY;
    const reading = parseServerReading(await link.connection.query(text, deadline), withIdentity);
    const identity = reading.identity ?? link.identity;
    if (reading.isInRecovery || identity === undefined) throw demoted(link.server);
    link.identity = identity;
    const { systemIdentifier, timeline } = identity;
    return { systemIdentifier, timeline, lsn: usableLsn(reading, identity) };
  }

  #reject(callers: Iterable<Caller>, error: unknown): void {
    for (const caller of callers) {
      caller.timer.cancel();
      this.#callers.delete(caller);
      caller.reject(error);
    }
  }

  #unlink(): void {
    this.#link?.connection.close();
    this.#link = undefined;
  }
}

function timedOut(): PoolError {
  return new PoolError("ERR_QUERY_WAIT_TIMEOUT", "the primary's position was not learned in time", {
    sqlState: "57014",
  });
}

function demoted(server: Server): PoolError {
  return new PoolError("ERR_NO_SERVER", `server ${server.name} is no longer the primary`, {
    sqlState: "57P03",
  });
}

function stopped(): PoolError {
  return new PoolError("ERR_SHUTTING_DOWN", "the gateway is shutting down", { sqlState: "57P01" });
}
