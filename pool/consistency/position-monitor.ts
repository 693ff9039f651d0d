// Watches one server through a connection of its own: its role, its history, and how far it has written or replayed.
import type { ControlConnection } from "../backend/control-connection.ts";
import type { Server } from "../routing/server.ts";
import type { Clock, Timer } from "../time/clock.ts";
import type { Position } from "./position.ts";
import {
  IDENTITY_QUERY,
  parseServerReading,
  SAMPLE_QUERY,
  usableLsn,
  type ServerIdentity,
  type ServerReading,
} from "./server-sample.ts";

/** `deadline` is clock milliseconds; past it the promise has rejected and nothing stays open. */
export type OpenControl = (server: Server, deadline: number) => Promise<ControlConnection>;

/** Why the next poll is wanted, the most urgent reason first. */
export type PollDemand = "waiting" | "traffic" | "sampling" | "idle";

export type MonitorEvent = "monitor_lost" | "monitor_stale" | "epoch_reset";

export interface PositionMonitorOptions {
  readonly server: Server;
  readonly openControl: OpenControl;
  readonly clock: Clock;
  /** From 0 up to 1, as Math.random. */
  readonly random: () => number;
  readonly demand: () => PollDemand;
  /** Called when a poll is sent; the sample that it brings carries the answer. */
  readonly pollSent: () => number;
  /** `sample` has changed. Must not call back into this monitor except for reading. */
  readonly changed: () => void;
  readonly count: (event: MonitorEvent) => void;
}

/** What is known of a server within one epoch. Immutable, replaced by the next. */
export interface ServerSample {
  readonly isInRecovery: boolean;
  readonly isReplayPaused: boolean;
  readonly identity: ServerIdentity;
  /** Normalised for a primary. */
  readonly position: Position;
  /** Clock milliseconds when it was asked for: the server was at `position` or behind it then. */
  readonly sentAt: number;
  readonly mark: number;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** A server that takes longer is as good as gone, and the connection's state is unknown. */
const POLL_TIMEOUT_MS = 5_000;
/** Eight idle polls: a host may have been replaced by an older one in the meantime without a word on our connection. */
export const SAMPLE_AGE_MAX_MS = 2_000;

const REOPEN_MS_MIN = 250;
const REOPEN_MS_MAX = 5_000;
/** A connection that lived this long is replaced at once: it was killed, or the server restarts. */
const STABLE_AFTER_MS = 1_000;
const JITTER = 0.25;

/** Without jitter all gateways would ask in step. */
const IDLE_GAP_MS = 250;
/** A session that wrote cannot read from replicas before the next sample of the primary. */
const SAMPLING_GAP_MS = 100;
const TRAFFIC_GAP_MS = 25;
/** Replay usually arrives within 4 ms; later a poll each 10 ms adds little to a wait that is already long. */
const WAITING_GAPS_MS = [1, 1, 2, 4, 8, 10] as const;
const WAITING_GAP_MS_MAX = 10;

/** A running replica changes its timeline when it follows a new primary; nothing on the connection tells. */
const REPLICA_IDENTITY_AGE_MAX_MS = 1_000;

/*
 *   stopped ──start──► opening ──► open ──closed, error, deadline──► reopening ──► opening
 *                         └───────────────refused───────────────────────┘
 *
 * `#connection` is set exactly while open. `#run` tells a late promise that it belongs to the past.
 */
export class PositionMonitor {
  readonly server: Server;
  readonly #options: PositionMonitorOptions;
  readonly #clock: Clock;
  #run = 0;
  #connection: ControlConnection | undefined;
  #openedAt = 0;
  #refusals = 0;
  #sample: ServerSample | undefined;
  #startedAt = "";
  #identityAt = 0;
  /** The next poll while open, the next attempt while reopening; undefined while an answer is awaited. */
  #timer: Timer | undefined;
  #staleTimer: Timer | undefined;
  #answeredAt = 0;
  #waitingGap = 0;
  #lastError: unknown;

  constructor(options: PositionMonitorOptions) {
    this.server = options.server;
    this.#options = options;
    this.#clock = options.clock;
  }

  start(): void {
    void this.#open(++this.#run);
  }

  stop(): void {
    this.#run++;
    this.#timer?.cancel();
    this.#timer = undefined;
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection !== undefined) close(connection);
    this.#forget();
  }

  /** Undefined while nothing recent enough to act on is known. */
  get sample(): ServerSample | undefined {
    return this.sampleAt(this.#clock.now());
  }

  /** As `sample`, for callers who know what time it is. */
  sampleAt(now: number): ServerSample | undefined {
    const sample = this.#sample;
    // The stale timer drops it too, but after the process itself slept it may run late.
    return sample !== undefined && now - sample.sentAt <= SAMPLE_AGE_MAX_MS ? sample : undefined;
  }

  /** Why the server was not reached or not understood, until it answers again. */
  get lastError(): unknown {
    return this.#lastError;
  }

  /** To be called when `demand` may have become more urgent: the next poll moves forward if need be. */
  demandChanged(): void {
    const demand = this.#options.demand();
    if (demand === "waiting") this.#waitingGap = 0;
    const connection = this.#connection;
    if (connection === undefined || this.#timer === undefined || demand === "idle") return;
    this.#pollLater(connection, this.#answeredAt + this.#nextGapMs() - this.#clock.now());
  }

  async #open(run: number): Promise<void> {
    let connection: ControlConnection;
    try {
      const deadline = this.#clock.now() + CONNECT_TIMEOUT_MS;
      connection = await this.#options.openControl(this.server, deadline);
    } catch (error) {
      if (run !== this.#run) return;
      this.#lastError = error;
      this.#reopenLater();
      return;
    }
    if (run !== this.#run) {
      connection.close();
      return;
    }
    this.#connection = connection;
    this.#openedAt = this.#clock.now();
    connection.onClosed = () => this.#lose(connection);
    if (connection.isOpen) void this.#poll(connection);
    else this.#lose(connection);
  }

  async #poll(connection: ControlConnection): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const sentAt = this.#clock.now();
    const withIdentity = this.#needsIdentity(sentAt);
    const mark = this.#options.pollSent();
    let reading: ServerReading;
    try {
      const text = withIdentity ? IDENTITY_QUERY : SAMPLE_QUERY;
      const rows = await connection.query(text, sentAt + POLL_TIMEOUT_MS);
      reading = parseServerReading(rows, withIdentity);
    } catch (error) {
      this.#lastError = error;
      // An answer that cannot be read says nothing about what the next one means: ask on a new connection.
      this.#lose(connection);
      return;
    }
    if (connection !== this.#connection) return;
    this.#answeredAt = this.#clock.now();
    const isAccepted = this.#accept(reading, sentAt, mark);
    this.#pollLater(connection, isAccepted ? this.#nextGapMs() : WAITING_GAPS_MS[0]);
  }

  #needsIdentity(now: number): boolean {
    const sample = this.#sample;
    if (sample === undefined) return true;
    return sample.isInRecovery && now - this.#identityAt >= REPLICA_IDENTITY_AGE_MAX_MS;
  }

  /** False when the answer belongs to an epoch whose identity is not known yet, or comes too late to be used. */
  #accept(reading: ServerReading, sentAt: number, mark: number): boolean {
    const known = this.#sample;
    if (known !== undefined && this.#hasRestarted(known, reading)) {
      this.#options.count("epoch_reset");
      this.#forget();
    }
    const identity = reading.identity ?? this.#sample?.identity;
    if (identity === undefined || this.#answeredAt - sentAt > SAMPLE_AGE_MAX_MS) return false;

    if (reading.identity !== undefined) this.#identityAt = sentAt;
    this.#startedAt = reading.startedAt;
    const { systemIdentifier, timeline } = identity;
    this.#sample = {
      isInRecovery: reading.isInRecovery,
      isReplayPaused: reading.isReplayPaused,
      identity,
      position: { systemIdentifier, timeline, lsn: usableLsn(reading, identity) },
      sentAt,
      mark,
    };
    this.#refusals = 0;
    this.#lastError = undefined;
    this.#staleTimer?.cancel();
    const ageLeft = sentAt + SAMPLE_AGE_MAX_MS - this.#answeredAt;
    this.#staleTimer = this.#clock.schedule(ageLeft, () => this.#dropStale());
    this.#options.changed();
    return true;
  }

  /** A position never moves back in one epoch: if it did, this is another server or another life of it. */
  #hasRestarted(known: ServerSample, reading: ServerReading): boolean {
    const identity = reading.identity;
    return (
      reading.startedAt !== this.#startedAt ||
      reading.isInRecovery !== known.isInRecovery ||
      usableLsn(reading, known.identity) < known.position.lsn ||
      (identity !== undefined &&
        (identity.timeline !== known.identity.timeline ||
          identity.systemIdentifier !== known.identity.systemIdentifier))
    );
  }

  #dropStale(): void {
    this.#options.count("monitor_stale");
    this.#forget();
  }

  /** Ends the epoch: after a restart a replica may be further back than it was. */
  #forget(): void {
    this.#staleTimer?.cancel();
    this.#staleTimer = undefined;
    if (this.#sample === undefined) return;
    this.#sample = undefined;
    this.server.epoch++;
    this.#options.changed();
  }

  #lose(connection: ControlConnection): void {
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    close(connection);
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#forget();
    this.#reopenLater();
  }

  #reopenLater(): void {
    this.#options.count("monitor_lost");
    const now = this.#clock.now();
    const wasStable = this.#refusals === 0 && now - this.#openedAt >= STABLE_AFTER_MS;
    const backOffMs = REOPEN_MS_MIN * 2 ** this.#refusals * (1 + JITTER * this.#options.random());
    if (backOffMs < REOPEN_MS_MAX) this.#refusals++;
    const delayMs = wasStable ? 0 : Math.min(backOffMs, REOPEN_MS_MAX);
    const run = this.#run;
    this.#timer = this.#clock.schedule(delayMs, () => {
      this.#timer = undefined;
      void this.#open(run);
    });
  }

  #nextGapMs(): number {
    const demand = this.#options.demand();
    if (demand === "waiting") return WAITING_GAPS_MS[this.#waitingGap++] ?? WAITING_GAP_MS_MAX;
    if (demand === "traffic") return TRAFFIC_GAP_MS;
    if (demand === "sampling") return SAMPLING_GAP_MS;
    return IDLE_GAP_MS * (1 - JITTER * this.#options.random());
  }

  #pollLater(connection: ControlConnection, delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.schedule(Math.max(0, delayMs), () => void this.#poll(connection));
  }
}

/** The owner closes it, so its end is no news. */
function close(connection: ControlConnection): void {
  connection.onClosed = undefined;
  connection.close();
}
