// Time as the pool sees it; the real clock and the simulated one implement this.

export interface Timer {
  /** Safe to call after it fired. */
  cancel(): void;
}

export interface Clock {
  /** Monotonic milliseconds, fractional; only differences mean anything. */
  now(): number;
  /** Milliseconds since 1970, for what leaves the process. */
  wallNow(): number;
  /** Calls `callback` once, `delayMs` from now. */
  schedule(delayMs: number, callback: () => void): Timer;
}
