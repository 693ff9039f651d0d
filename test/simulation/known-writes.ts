// Which writes somebody knows of: a failover may lose the latest of a key, and then the one before it must still be seen.

/** Of one key. A failover loses what one replica had not received, which is seldom more. */
const KEPT = 6;
const NONE: readonly number[] = [];

export class KnownWrites {
  readonly #stamps = new Map<number, readonly number[]>();

  get keys(): readonly number[] {
    return [...this.#stamps.keys()];
  }

  note(key: number, stamp: number): void {
    const known = this.of(key);
    if (stamp > (known[0] ?? 0)) this.#stamps.set(key, [stamp, ...known.slice(0, KEPT - 1)]);
    else if (!known.includes(stamp)) this.#stamps.set(key, latestFirst([stamp, ...known]));
  }

  /** Stamps, the latest first. */
  of(key: number): readonly number[] {
    return this.#stamps.get(key) ?? NONE;
  }
}

export function latestFirst(stamps: readonly number[]): readonly number[] {
  return [...new Set(stamps)].toSorted((a, b) => b - a).slice(0, KEPT);
}
