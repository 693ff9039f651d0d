// A clock that moves only when a test moves it.
import type { Clock, Timer } from "#pool/time/clock.ts";

interface FakeTimer extends Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** Starts at 0; timers run inside `advance`, in order of their due time, then of their creation. */
export class FakeClock implements Clock {
  #now = 0;
  readonly #wallStart: number;
  readonly #timers: FakeTimer[] = [];

  constructor(wallStart: number = Date.UTC(2026, 0, 1)) {
    this.#wallStart = wallStart;
  }

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#wallStart + Math.floor(this.#now);
  }

  schedule(delayMs: number, callback: () => void): Timer {
    const timer: FakeTimer = {
      dueAt: this.#now + Math.max(0, delayMs),
      callback,
      cancel: () => {
        const index = this.#timers.indexOf(timer);
        if (index >= 0) this.#timers.splice(index, 1);
      },
    };
    const later = this.#timers.findIndex((other) => other.dueAt > timer.dueAt);
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer);
    return timer;
  }

  /** Timers that have neither fired nor been cancelled. */
  get timerCount(): number {
    return this.#timers.length;
  }

  /** When the next timer fires; undefined if none waits. */
  get nextDueAt(): number | undefined {
    return this.#timers[0]?.dueAt;
  }

  /** Timers that callbacks add run too if they fall due on the way. Promises settle only after it: await something then. */
  advance(ms: number): void {
    const target = this.#now + ms;
    for (;;) {
      const next = this.#timers[0];
      if (next === undefined || next.dueAt > target) break;
      this.#timers.shift();
      this.#now = Math.max(this.#now, next.dueAt);
      next.callback();
    }
    this.#now = target;
  }
}
