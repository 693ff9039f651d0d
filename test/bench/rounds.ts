// Runs contenders against each other: one warm-up, then shuffled rounds until every bar is decided or the rounds are used up.
import type {
  BarOutcome,
  BenchOptions,
  Comparison,
  ComparisonOutcome,
  ContenderOutcome,
  Sample,
} from "./scenario.ts";
import { shuffled } from "./statistics.ts";
import { errorOf, judge } from "./verdict.ts";

export async function runRounds(
  comparison: Comparison,
  rounds: BenchOptions["rounds"],
  random: () => number,
  log: (line: string) => void,
): Promise<ComparisonOutcome> {
  const samples = new Map<string, Sample[]>();
  for (const { name } of comparison.contenders) samples.set(name, []);
  const contenders = (): ContenderOutcome[] =>
    comparison.contenders.map(({ name }) => ({ name, samples: samples.get(name) ?? [] }));
  const judged = (): BarOutcome[] =>
    comparison.bars.map((bar) => judge(bar, comparison, contenders()));

  // Just-in-time compilers, caches and pools are cold; only its errors count.
  for (const contender of comparison.contenders) {
    const sample = await contender.run();
    if (sample.errorCount > 0) samples.get(contender.name)?.push(sample);
  }
  for (let round = 1; round <= rounds.max && errorOf(contenders()) === undefined; round++) {
    const isOpen = judged().some(({ verdict }) => verdict === "undecided");
    if (round > rounds.min && !isOpen) break;
    log(`${comparison.name}: round ${round}`);
    for (const contender of shuffled(comparison.contenders, random)) {
      samples.get(contender.name)?.push(await contender.run());
    }
  }
  const { name, control } = comparison;
  return {
    name,
    contenders: contenders(),
    bars: judged(),
    ...(control === undefined ? {} : { control }),
  };
}
