// One timer for many waits of the same length: nearly all of them end before their time, so each costs an entry in a set and no timer.
import type { Clock } from "#pool/time/clock.ts";

/** One wait. Compared by identity. */
export interface SharedWait {
  readonly dueAt: number;
  readonly callback: () => void;
}

export class SharedTimer {
  readonly #clock: Clock;
  readonly #delayMs: number;
  /** Oldest first, which is also the order in which they are due. */
  readonly #waits = new Set<SharedWait>();
  #isArmed = false;

  constructor(clock: Clock, delayMs: number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  /** Calls `callback` once the delay is over, unless the wait is cancelled before. */
  schedule(callback: () => void): SharedWait {
    const wait = { dueAt: this.#clock.now() + this.#delayMs, callback };
    this.#waits.add(wait);
    if (!this.#isArmed) this.#arm(this.#delayMs);
    return wait;
  }

  /** Safe to call after it was over. */
  cancel(wait: SharedWait): void {
    this.#waits.delete(wait);
  }

  #arm(delayMs: number): void {
    this.#isArmed = true;
    this.#clock.schedule(delayMs, () => this.#fire());
  }

  /** Not taken back when the last wait ends: it finds nothing to do, at most once per delay. */
  #fire(): void {
    const now = this.#clock.now();
    for (const wait of this.#waits) {
      if (wait.dueAt > now) {
        this.#arm(wait.dueAt - now);
        return;
      }
      this.#waits.delete(wait);
      // May begin another wait, which this loop then finds.
      wait.callback();
    }
    this.#isArmed = false;
  }
}
