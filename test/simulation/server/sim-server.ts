// One simulated PostgreSQL server: its role, how far it has come in the log, and what a query sees of that.
import type { SimClock } from "../sim-clock.ts";
import type { ServerSession } from "./server-session.ts";
import { type Change, type Timeline, START_LSN, insertPosition } from "./write-ahead-log.ts";

export const KEY_COUNT = 48;

export class SimServer {
  readonly name: string;
  readonly #clock: SimClock;
  timeline: Timeline;
  isPrimary: boolean;
  isUp = true;
  /** Clock milliseconds until which it answers nothing. */
  hungUntil = 0;
  /** Told in pg_postmaster_start_time(). */
  startedAt = 0;
  isReplayPaused = false;
  /** From being written at the primary to being received, and from there to being visible; milliseconds. */
  transitMs = 1;
  applyMs = 0;
  /** Records of `timeline` that are visible here. */
  #applied: number;
  readonly #stamps = new Int32Array(KEY_COUNT);
  readonly sessions = new Map<number, ServerSession>();

  constructor(name: string, clock: SimClock, timeline: Timeline, isPrimary: boolean) {
    this.name = name;
    this.#clock = clock;
    this.timeline = timeline;
    this.isPrimary = isPrimary;
    this.#applied = timeline.records.length;
  }

  /** Of a primary the insert position, of a replica the replay position. */
  get lsn(): number {
    this.catchUp();
    if (this.isPrimary) return insertPosition(this.timeline.endLsn);
    return this.timeline.records[this.#applied - 1]?.lsn ?? START_LSN;
  }

  get applied(): number {
    this.catchUp();
    return this.#applied;
  }

  /** The latest committed change of the key that is visible here; 0 before the first. */
  stampOf(key: number): number {
    this.catchUp();
    return this.#stamps[key] ?? 0;
  }

  /** A record that makes nothing visible. */
  log(sizeBytes: number): void {
    this.timeline.append(this.#clock.now(), sizeBytes, []);
    this.#applied = this.timeline.records.length;
  }

  commit(sizeBytes: number, changes: readonly Change[]): void {
    this.timeline.append(this.#clock.now(), sizeBytes, changes);
    this.catchUp();
  }

  /** Lazily: a replica's state matters only when somebody looks. */
  catchUp(): void {
    if (this.isReplayPaused && !this.isPrimary) return;
    const { records, endedAt } = this.timeline;
    const now = this.#clock.now();
    for (;;) {
      const record = records[this.#applied];
      if (record === undefined) return;
      const received = record.at + this.transitMs;
      const isThere = received <= Math.min(now, endedAt) && received + this.applyMs <= now;
      if (!this.isPrimary && !isThere) return;
      for (const { key, stamp } of record.changes) this.#stamps[key] = stamp;
      this.#applied++;
    }
  }

  /** Takes up a history at a record of it, as after pg_rewind or from an older restartpoint. */
  rebuild(timeline: Timeline, recordCount: number): void {
    this.timeline = timeline;
    this.#stamps.fill(0);
    this.#applied = 0;
    for (const record of timeline.records.slice(0, recordCount)) {
      for (const { key, stamp } of record.changes) this.#stamps[key] = stamp;
      this.#applied++;
    }
  }
}
