// What tells the simulated cluster from any other.

export const SYSTEM_IDENTIFIER = 7_300_000_000_000_000_007n;
