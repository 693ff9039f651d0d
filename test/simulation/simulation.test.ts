// The pool core, router and consistency code under seeded faults: fresh seeds, seeds that once found something, and planted bugs.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { testSeed } from "#test/support/seeded-random.ts";
import keptSeeds from "./kept-seeds.json";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { replayLine } from "./report.ts";
import { type SimulationResult, simulate } from "./simulation.ts";

const FRESH_SEEDS = 12;
const SEEDS_TO_FIND_A_BUG = 30;
const STATEMENTS_MIN = 5_000;

beforeAll(loadStatementParser);

/** Undefined, or all that is needed to see it again. */
function violationOf({ seed, violation }: SimulationResult): string | undefined {
  if (violation === undefined) return undefined;
  return `${violation.invariant}: ${violation.detail}; ${replayLine(seed, undefined)}`;
}

describe("no invariant is violated", () => {
  const first = testSeed();
  console.log(`fresh seeds from ${first}; WALGATE_TEST_SEED=${first} repeats them`);

  test(`with ${FRESH_SEEDS} fresh seeds, of some ${STATEMENTS_MIN} statements each`, () => {
    const results = Array.from({ length: FRESH_SEEDS }, (_, index) =>
      simulate({ seed: first + index }),
    );
    const statements = results.reduce((sum, result) => sum + result.statements, 0);

    expect(results.map(violationOf).filter((text) => text !== undefined)).toEqual([]);
    expect(statements / FRESH_SEEDS).toBeGreaterThan(STATEMENTS_MIN);
  });

  test.each(keptSeeds)("with kept seed $seed: $found", ({ seed }) => {
    expect(violationOf(simulate({ seed }))).toBeUndefined();
  });
});

test("two runs of one seed give the same trace, byte for byte, and another seed another", () => {
  const [once, again, other] = [11, 11, 12].map((seed) => simulate({ seed, isTraced: true }));

  expect(again?.trace?.join("")).toBe(once?.trace?.join("") ?? "");
  expect(again?.fingerprint).toBe(once?.fingerprint ?? "");
  expect(other?.fingerprint).not.toBe(once?.fingerprint ?? "");
});

describe(`each planted bug is found within ${SEEDS_TO_FIND_A_BUG} seeds, where the product passes`, () => {
  test.each(PLANTED_BUGS.map((bug) => [bug.name, bug] as const))("%s", (name, bug) => {
    for (let seed = 1; seed <= SEEDS_TO_FIND_A_BUG; seed++) {
      const { violation } = simulate({ seed, bug });
      if (violation === undefined) continue;
      console.log(`${name} was found by seed ${seed}: ${violation.invariant}: ${violation.detail}`);
      expect(bug.foundAs).toContain(violation.invariant);
      expect(violationOf(simulate({ seed }))).toBeUndefined();
      return;
    }
    throw new Error(`${name} was not found by ${SEEDS_TO_FIND_A_BUG} seeds`);
  });
});
