// Counts the requests in flight, so that a stop can let them end.
import type { Clock } from "#pool/time/clock.ts";

export class Traffic {
  #inFlight = 0;
  #isDraining = false;
  readonly #idle = Promise.withResolvers<void>();

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** A request is in flight, or something of it that outlives its handler; `ended` once for each. */
  began(): void {
    this.#inFlight++;
  }

  ended(): void {
    this.#inFlight--;
    this.#settleIfIdle();
  }

  /** No request is taken any more. Resolves when those in flight have ended, or at the deadline (clock milliseconds). */
  async drain(clock: Clock, deadline: number): Promise<void> {
    this.#isDraining = true;
    const delayMs = Math.max(0, deadline - clock.now());
    const timer = clock.schedule(delayMs, () => this.#idle.resolve());
    this.#settleIfIdle();
    await this.#idle.promise;
    timer.cancel();
  }

  #settleIfIdle(): void {
    if (this.#isDraining && this.#inFlight === 0) this.#idle.resolve();
  }
}
