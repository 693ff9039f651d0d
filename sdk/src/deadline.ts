// One query's time: its timeout and the caller's signal as one, and the error that says which of
// them ended it.

import { TimeoutError } from "./errors.ts";

/** Bounds every wait of one query: for its turn, for the caller's token, for the answer. */
export class Deadline {
  /** Aborts at the timeout, or when the caller's signal does. */
  readonly signal: AbortSignal;
  readonly #timeoutMs: number;
  readonly #caller: AbortSignal | undefined;

  constructor(timeoutMs: number, caller: AbortSignal | undefined) {
    const timeout = AbortSignal.timeout(timeoutMs);
    this.signal = caller === undefined ? timeout : AbortSignal.any([timeout, caller]);
    this.#timeoutMs = timeoutMs;
    this.#caller = caller;
  }

  /** Why the wait is over: the caller's own reason, as with fetch, or a TimeoutError. */
  get reason(): unknown {
    return this.#caller?.aborted === true ? this.#caller.reason : new TimeoutError(this.#timeoutMs);
  }

  /** Throws the reason once the signal is aborted. */
  throwIfOver(): void {
    if (this.signal.aborted) {
      throw this.reason;
    }
  }

  /**
   * Starts `work` and waits for it, but no longer than the signal lets it, even if `work` takes no
   * notice of the signal. An aborted fetch and the signal fail at the same moment, so that both
   * ways end in throwIfOver() and name the same reason.
   */
  async bound<T>(work: () => Promise<T>): Promise<T> {
    this.throwIfOver();
    let stop = (): void => {};
    const over = new Promise<never>((_resolve, reject) => {
      stop = (): void => reject(this.reason);
    });
    this.signal.addEventListener("abort", stop, { once: true });
    try {
      return await Promise.race([work(), over]);
    } catch (error) {
      this.throwIfOver();
      throw error;
    } finally {
      this.signal.removeEventListener("abort", stop);
    }
  }
}
