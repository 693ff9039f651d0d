// Lets a bounded number of queries of one session be under way, and the others wait in order.

import type { Deadline } from "./deadline.ts";
import { QueueFullError } from "./errors.ts";

/**
 * Every query under way may bring back a token that no other covers, and all of them travel in one
 * header: 32 tokens of 67 characters are 2 KB of the 16 KB that the gateway takes as a header
 * block.
 */
export const UNDER_WAY_MAX = 32;

/**
 * Waiters cost memory only, each has its own deadline; more than this is a loop that forgot to
 * await.
 */
export const WAITERS_MAX = 10_000;

export class Turnstile {
  #underWay = 0;
  /** In order of arrival. Each entry admits its waiter. */
  readonly #waiters: Set<() => void> = new Set();

  /**
   * Resolves when the caller may go on; it must then call leave() once. At the deadline it loses
   * its place. Not to be raced against the deadline from outside: a place granted at that very
   * moment would never be left.
   *
   * @throws QueueFullError when WAITERS_MAX others wait; the deadline's reason.
   */
  async enter(deadline: Deadline): Promise<void> {
    deadline.throwIfOver();
    if (this.#underWay < UNDER_WAY_MAX) {
      this.#underWay += 1;
      return;
    }
    if (this.#waiters.size >= WAITERS_MAX) {
      throw new QueueFullError(WAITERS_MAX);
    }
    const { signal } = deadline;
    await new Promise<void>((resolve, reject) => {
      const admit = (): void => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = (): void => {
        this.#waiters.delete(admit);
        reject(deadline.reason);
      };
      this.#waiters.add(admit);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** Hands the place straight to the first waiter, so that a newcomer cannot overtake it. */
  leave(): void {
    for (const admit of this.#waiters) {
      this.#waiters.delete(admit);
      admit();
      return;
    }
    this.#underWay -= 1;
  }
}
