// How often contenders are run: a warm-up, the rounds that were asked for, and more while a bar is open.
import { expect, test } from "bun:test";
import { runRounds } from "#test/bench/rounds.ts";
import type { Bar, Comparison, Sample } from "#test/bench/scenario.ts";

const BAR: Bar = {
  figure: "tps",
  subject: "walgate",
  peer: "pgbouncer",
  bound: "at least",
  limit: 0.85,
};

function sample(tps: number): Sample {
  return { errorCount: 0, figures: { tps } };
}

/** The n-th run of walgate gives `tps(n)`; the warm-up is run 0. */
function comparison(tps: (run: number) => Sample, calls: string[] = []): Comparison {
  let run = 0;
  return {
    name: "prepared",
    bars: [BAR],
    contenders: [
      {
        name: "walgate",
        run: async () => {
          calls.push("walgate");
          return tps(run++);
        },
      },
      {
        name: "pgbouncer",
        run: async () => {
          calls.push("pgbouncer");
          return sample(1_000);
        },
      },
    ],
  };
}

const silent = (): void => {};

test("a clear result ends after the rounds that were asked for", async () => {
  const calls: string[] = [];
  const clear = comparison(() => sample(950), calls);

  const outcome = await runRounds(clear, { min: 7, max: 30 }, () => 0, silent);

  expect(outcome.contenders.map(({ samples }) => samples.length)).toEqual([7, 7]);
  expect(outcome.bars.map(({ verdict }) => verdict)).toEqual(["pass"]);
  expect(calls.length).toBe(2 * 8);
});

test("rounds are added until the bar is out of the spread", async () => {
  // One bad value in seven keeps the spread open; the ninth round may leave it out.
  const once = comparison((run) => sample(run === 3 ? 100 : 950));

  const outcome = await runRounds(once, { min: 7, max: 30 }, Math.random, silent);

  expect(outcome.contenders.map(({ samples }) => samples.length)).toEqual([9, 9]);
  expect(outcome.bars.map(({ verdict }) => verdict)).toEqual(["pass"]);
});

test("what the last round leaves open is undecided", async () => {
  const noisy = comparison((run) => sample(run % 2 === 0 ? 100 : 2_000));

  const outcome = await runRounds(noisy, { min: 7, max: 30 }, Math.random, silent);

  expect(outcome.contenders.map(({ samples }) => samples.length)).toEqual([30, 30]);
  expect(outcome.bars.map(({ verdict }) => verdict)).toEqual(["undecided"]);
});

test("the warm-up is no round, but its errors end the comparison", async () => {
  const broken = comparison(() => ({ errorCount: 2, firstError: "refused", figures: {} }));

  const outcome = await runRounds(broken, { min: 7, max: 30 }, Math.random, silent);

  expect(outcome.contenders.map(({ samples }) => samples.length)).toEqual([1, 0]);
  expect(outcome.bars).toEqual([
    { bar: BAR, verdict: "errors", reason: "walgate: 2 errors (refused)" },
  ]);
});

test("an error ends the comparison after its round", async () => {
  const late = comparison((run) =>
    run === 2 ? { errorCount: 1, firstError: "reset", figures: {} } : sample(950),
  );

  const outcome = await runRounds(late, { min: 7, max: 30 }, Math.random, silent);

  expect(outcome.contenders.map(({ samples }) => samples.length)).toEqual([2, 2]);
  expect(outcome.bars.map(({ verdict }) => verdict)).toEqual(["errors"]);
});

test("each round has an order of its own", async () => {
  const calls: string[] = [];
  const numbers = [0, 0, 0.9, 0];

  await runRounds(
    comparison(() => sample(950), calls),
    { min: 2, max: 2 },
    () => numbers.shift() ?? 0,
    silent,
  );

  expect(calls.slice(2)).toEqual(["walgate", "pgbouncer", "pgbouncer", "walgate"]);
});
