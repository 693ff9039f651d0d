// Plain counters of one user's pool; `pool/connections` raises them, statistics read and subtract.

/** Each only grows, from the pool's creation on. */
export interface PoolCounters {
  /** Leases granted, at once or after waiting. */
  assignments: number;
  opens: number;
  openFailures: number;
  /** Requests that had to queue, however they ended. */
  waits: number;
  /** Milliseconds that queued requests waited, however they ended. */
  waitMs: number;
  timeouts: number;
  /** FREE connections closed so that another match key got their slot. */
  evictions: number;
  /** Changes of principal that were started. */
  rekeys: number;
}

export function createPoolCounters(): PoolCounters {
  return {
    assignments: 0,
    opens: 0,
    openFailures: 0,
    waits: 0,
    waitMs: 0,
    timeouts: 0,
    evictions: 0,
    rekeys: 0,
  };
}
