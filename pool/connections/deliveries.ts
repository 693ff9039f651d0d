// Calls waiters back once the pool's state is whole, one after the other and never one inside another.

/**
 * A callback may acquire and release at once. Were it called where it is decided, it would see a pool half
 * changed, and a queue of clients that release as soon as they are granted would nest as deep as it is long.
 */
export class Deliveries {
  readonly #pending: (() => void)[] = [];
  #isDelivering = false;

  push(callback: () => void): void {
    this.#pending.push(callback);
  }

  /** Last act of each operation that may have decided about a waiter. */
  flush(): void {
    if (this.#isDelivering || this.#pending.length === 0) {
      return;
    }
    this.#isDelivering = true;
    try {
      for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
        next();
      }
    } finally {
      this.#isDelivering = false;
      // A callback threw, which is a bug of its owner: it goes up, but the others get their answer.
      if (this.#pending.length > 0) {
        queueMicrotask(() => this.flush());
      }
    }
  }
}
