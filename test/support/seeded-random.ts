// Random choices that a test can repeat: the same seed gives the same sequence.

/** Mulberry32: 32 bits of state, enough for the choices of a test. */
export class SeededRandom {
  readonly seed: number;
  #state: number;

  constructor(seed: number) {
    this.seed = seed;
    this.#state = seed;
  }

  /** 0 ≤ x < 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, 0 ≤ x < `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** True in `share` of all cases. */
  chance(share: number): boolean {
    return this.next() < share;
  }
}

/** WALGATE_TEST_SEED repeats a run that has failed; else every run has a seed of its own. */
export function testSeed(): number {
  const given = process.env["WALGATE_TEST_SEED"];
  return given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
}
