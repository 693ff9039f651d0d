// Medians and how sure they are: plain arithmetic on lists of figures. Pure.

/** The value below which the share `fraction` of the values lies, by linear interpolation; NaN for no values. */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(place)];
  const above = sorted[Math.ceil(place)];
  if (below === undefined || above === undefined) return Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** A range that holds the true median, and the ends that the verdict looks at. */
export interface Spread {
  readonly low: number;
  readonly high: number;
}

/** How often a spread may miss the true median. */
const MISS_SHARE_MAX = 0.05;

/**
 * Where the true median lies with 95 % certainty, whatever the shape of the noise: between the order statistics that the sign test
 * leaves. It narrows as rounds are added, which the range of all values does not. Fewer than 6 values cannot say: infinite.
 */
export function medianSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  // Chance that at most `dropped` of `count` fair coins show heads, and thus that the median lies outside on one side.
  let tail = 0.5 ** count;
  let term = tail;
  let dropped = -1;
  while (2 * tail <= MISS_SHARE_MAX && dropped < count) {
    dropped++;
    term *= (count - dropped) / (dropped + 1);
    tail += term;
  }
  return {
    low: sorted[dropped] ?? Number.NEGATIVE_INFINITY,
    high: sorted[count - 1 - dropped] ?? Number.POSITIVE_INFINITY,
  };
}

/** A new list in random order (Fisher and Yates); `random` gives numbers from 0 to below 1. */
export function shuffled<T>(values: readonly T[], random: () => number): T[] {
  const left = [...values];
  const result: T[] = [];
  while (left.length > 0) result.push(...left.splice(Math.floor(random() * left.length), 1));
  return result;
}
