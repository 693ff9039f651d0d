// The clock of a running process.
import type { Clock, Timer } from "./clock.ts";

/** The runtime's timers take a signed 32-bit delay (24.8 days) and fire at once for a longer one. */
const RUNTIME_DELAY_MAX_MS = 2 ** 31 - 1;

class SystemTimer implements Timer {
  readonly #clock: Clock;
  readonly #dueAt: number;
  readonly #callback: () => void;
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(clock: Clock, delayMs: number, callback: () => void) {
    this.#clock = clock;
    this.#dueAt = clock.now() + delayMs;
    this.#callback = callback;
    this.#arm();
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #arm(): void {
    const leftMs = Math.max(0, this.#dueAt - this.#clock.now());
    // Rounded up, because the runtime cuts the fraction off and would fire early.
    const delayMs = Math.min(Math.ceil(leftMs), RUNTIME_DELAY_MAX_MS);
    this.#handle = setTimeout(() => this.#fire(), delayMs);
    this.#handle.unref();
  }

  #fire(): void {
    // Early: the delay was cut at its maximum, or the runtime's clock is behind ours by a fraction.
    if (this.#clock.now() < this.#dueAt) this.#arm();
    else this.#callback();
  }
}

/**
 * Timers never fire early. A waiting timer does not keep the process alive: listeners and sockets do, and once
 * they are gone there is nothing left that a deadline could guard.
 */
export class SystemClock implements Clock {
  now(): number {
    return performance.now();
  }

  wallNow(): number {
    return Date.now();
  }

  schedule(delayMs: number, callback: () => void): Timer {
    return new SystemTimer(this, delayMs, callback);
  }
}
