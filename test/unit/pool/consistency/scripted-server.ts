// A PostgreSQL server as the monitor sees it: answers from fields that a test sets, or hangs, refuses and lies.
import type { ControlConnection } from "#pool/backend/control-connection.ts";
import type { OpenControl } from "#pool/consistency/position-monitor.ts";
import { formatLsn } from "#pool/consistency/lsn.ts";
import { IDENTITY_QUERY } from "#pool/consistency/server-sample.ts";
import { PoolError } from "#pool/errors.ts";
import type { Server } from "#pool/routing/server.ts";
import type { FakeClock } from "#test/support/fake-clock.ts";

export const SYSTEM = 7_300_000_000_000_000_001n;
type Rows = readonly (readonly (string | null)[])[];

export class ScriptedServer {
  readonly server: Server;
  readonly clock: FakeClock;
  isInRecovery = true;
  lsn = 0x1000_0000n;
  pauseState = "not paused";
  startedAt = "2026-01-01 00:00:00+00";
  timeline = 1;
  systemIdentifier = SYSTEM;
  /** `held`: answers are computed at once and given by `release`. */
  behaviour: "answers" | "held" | "hangs" | "refuses" | "lies" = "answers";
  lie: Rows = [["t"]];
  readonly polls: { readonly at: number; readonly withIdentity: boolean }[] = [];
  readonly opened: number[] = [];
  /** Called at each attempt to connect, before it is answered. */
  opening: (() => void) | undefined;
  readonly #held: (() => void)[] = [];
  readonly #connections = new Set<ControlConnection>();

  constructor(clock: FakeClock, name: string, weight = 1) {
    this.clock = clock;
    this.server = {
      name,
      address: { host: "127.0.0.1", port: 5432 },
      weight,
      tls: { mode: "disable", ca: undefined },
      role: "unknown",
      epoch: 0,
      leased: 0,
    };
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Answers what was asked while `held`, in order. */
  release(): void {
    for (const answer of this.#held.splice(0)) answer();
  }

  /** As a crash does: every connection ends. */
  breakConnections(): void {
    for (const connection of this.#connections) connection.close();
  }

  open(): Promise<ControlConnection> {
    this.opened.push(this.clock.now());
    this.opening?.();
    if (this.behaviour === "refuses") {
      return Promise.reject(new PoolError("ERR_CONNECT_FAILED", "refused", { sqlState: "08001" }));
    }
    const failures = new Set<() => void>();
    let isOpen = true;
    const connection: ControlConnection = {
      onClosed: undefined,
      get isOpen() {
        return isOpen;
      },
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#connections.delete(connection);
        for (const fail of failures) fail();
        connection.onClosed?.();
      },
      query: (text, deadline) => {
        const { promise, resolve, reject } = Promise.withResolvers<Rows>();
        const timer = this.clock.schedule(deadline - this.clock.now(), () => connection.close());
        const fail = (): void => {
          timer.cancel();
          reject(new PoolError("ERR_CONNECTION_LOST", "closed", { sqlState: "08006" }));
        };
        failures.add(fail);
        if (!isOpen) fail();
        const rows = this.#answer(text);
        const answer = (): void => {
          timer.cancel();
          resolve(rows);
        };
        if (this.behaviour === "held") this.#held.push(answer);
        else if (this.behaviour !== "hangs") answer();
        return promise;
      },
    };
    this.#connections.add(connection);
    return Promise.resolve(connection);
  }

  #answer(text: string): Rows {
    const withIdentity = text === IDENTITY_QUERY;
    this.polls.push({ at: this.clock.now(), withIdentity });
    if (this.behaviour === "lies") return this.lie;
    const pause = this.isInRecovery ? this.pauseState : null;
    const row = [this.isInRecovery ? "t" : "f", formatLsn(this.lsn), pause, this.startedAt];
    if (!withIdentity) return [row];
    const file = `${this.timeline.toString(16).padStart(8, "0").toUpperCase()}0000000000000001`;
    return [
      [
        ...row,
        BigInt.asIntN(64, this.systemIdentifier).toString(),
        this.isInRecovery ? String(this.timeline) : null,
        this.isInRecovery ? null : file,
        "8192",
        "16777216",
        "180004",
      ],
    ];
  }
}

export function opener(servers: readonly ScriptedServer[]): OpenControl {
  return (server) => {
    const scripted = servers.find((candidate) => candidate.server === server);
    if (scripted === undefined) throw new Error(`no script for ${server.name}`);
    return scripted.open();
  };
}

/** Lets every promise that can go on do so; the longest chain here has about ten links. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
}

/** Time passes in steps of 1 ms, with promises going on in between. */
export async function elapse(clock: FakeClock, ms: number): Promise<void> {
  for (let step = 0; step < ms; step++) {
    clock.advance(1);
    await settle();
  }
}
