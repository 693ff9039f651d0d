// The pool's one periodic timer; it runs only while there is something to sweep.
import type { Clock, Timer } from "../time/clock.ts";
import { JANITOR_INTERVAL_MS } from "./limits.ts";

export class Janitor {
  readonly #clock: Clock;
  readonly #sweep: (now: number) => boolean;
  #timer: Timer | undefined;

  /** `sweep` gets clock milliseconds and says whether anything is left to watch. */
  constructor(clock: Clock, sweep: (now: number) => boolean) {
    this.#clock = clock;
    this.#sweep = sweep;
  }

  /** Starts it if it rests. */
  start(): void {
    this.#timer ??= this.#clock.schedule(JANITOR_INTERVAL_MS, () => this.#tick());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #tick(): void {
    this.#timer = undefined;
    if (this.#sweep(this.#clock.now())) {
      this.start();
    }
  }
}
