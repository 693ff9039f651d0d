// Medians and their spread, against values worked out by hand from the binomial distribution.
import { describe, expect, test } from "bun:test";
import { median, medianSpread, quantile, shuffled } from "#test/bench/statistics.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe("median and quantile", () => {
  test("the median lies in the middle, whatever the order", () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  test("a quantile lies between its neighbours", () => {
    expect(quantile(upTo(101), 0.99)).toBe(100);
    expect(quantile([0, 10], 0.25)).toBe(2.5);
  });

  test("no values have no median", () => {
    expect(median([])).toBeNaN();
  });
});

describe("the spread of a median", () => {
  test.each([
    // 2 × 0.5^5 = 6 % may be missed.
    [5, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
    // 2 × 0.5^6 = 3 %.
    [6, 1, 6],
    [7, 1, 7],
    // 2 × (1 + 8) / 2^8 = 7 %, so none may be dropped; with nine it is 2 × 10 / 2^9 = 4 %.
    [8, 1, 8],
    [9, 2, 8],
    // The sign test of 30 values leaves the 10th to the 21st.
    [30, 10, 21],
    [0, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  ])("of %i values reaches from %p to %p", (count, low, high) => {
    expect(medianSpread(upTo(count))).toEqual({ low, high });
  });

  test("is not moved by one wild value once there are nine", () => {
    expect(medianSpread([1, 2, 3, 4, 5, 6, 7, 8, 1_000])).toEqual({ low: 2, high: 8 });
  });
});

test("shuffling keeps every value once and follows the random numbers", () => {
  const numbers = [0.99, 0, 0.5, 0];
  const result = shuffled(["a", "b", "c", "d"], () => numbers.shift() ?? 0);

  expect(result).toEqual(["d", "a", "c", "b"]);
});
