// Lets others go on in the middle of long work: the thread is one for all clients.
import type { Clock } from "#pool/time/clock.ts";

/** A client that waits for another's batch should not notice; a pause costs some 1 ms, so it must not come for each statement. */
export const TURN_MS = 10;

export class Turn {
  readonly #clock: Clock;
  #endsAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#endsAt = clock.now() + TURN_MS;
  }

  get isOver(): boolean {
    return this.#clock.now() >= this.#endsAt;
  }

  /** Resolves once others had theirs; then the next one has begun. */
  async pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#clock.schedule(0, resolve);
    });
    this.#endsAt = this.#clock.now() + TURN_MS;
  }
}
