// Judges a bar from the samples of all rounds. Pure. A run with errors yields no ratio.
import type { Bar, BarOutcome, Comparison, ContenderOutcome, Sample } from "./scenario.ts";
import { median, medianSpread } from "./statistics.ts";

/** The first error of any run of these contenders, in words; undefined when all runs were clean. */
export function errorOf(contenders: readonly ContenderOutcome[]): string | undefined {
  for (const { name, samples } of contenders) {
    const failed = samples.find((sample) => sample.errorCount > 0);
    if (failed === undefined) continue;
    return `${name}: ${failed.errorCount} errors (${failed.firstError ?? "no message"})`;
  }
  return undefined;
}

/** The figure of one contender by round. */
export function figuresOf(samples: readonly Sample[], figure: string): number[] {
  return samples.map(({ figures }) => figures[figure] ?? Number.NaN);
}

/** Subject over peer, round by round: what slowed a whole round slowed both. */
export function roundRatios(
  subject: readonly Sample[],
  peer: readonly Sample[],
  figure: string,
): number[] {
  const peers = figuresOf(peer, figure);
  return figuresOf(subject, figure)
    .slice(0, peers.length)
    .map((value, round) => value / (peers[round] ?? Number.NaN));
}

/** The ratio of two contenders, or why there is none. */
export type Ratio =
  | { readonly ok: true; readonly value: number; readonly low: number; readonly high: number }
  | { readonly ok: false; readonly reason: string };

export function ratioOf(subject: ContenderOutcome, peer: ContenderOutcome, figure: string): Ratio {
  const error = errorOf([subject, peer]);
  if (error !== undefined) return { ok: false, reason: error };
  const ratios = roundRatios(subject.samples, peer.samples, figure);
  if (ratios.length === 0 || ratios.some((ratio) => !Number.isFinite(ratio))) {
    return { ok: false, reason: `no ${figure}` };
  }
  return { ok: true, value: median(ratios), ...medianSpread(ratios) };
}

/**
 * A bar about a ratio is judged on it divided by the A/A ratio of the same rounds. The verdict is `undecided` while the bar lies
 * within the spread: then only more rounds can tell.
 */
export function judge(
  bar: Bar,
  comparison: Pick<Comparison, "control" | "missing">,
  contenders: readonly ContenderOutcome[],
): BarOutcome {
  const missing = comparison.missing?.find(({ peer }) => peer === bar.peer);
  if (missing !== undefined) return { bar, verdict: "not measured", reason: missing.reason };
  const find = (name: string | undefined): ContenderOutcome | undefined =>
    contenders.find((contender) => contender.name === name);
  const subject = find(bar.subject);
  if (subject === undefined) return notMeasured(bar, bar.subject);
  if (bar.peer === undefined) {
    const error = errorOf([subject]);
    if (error !== undefined) return { bar, verdict: "errors", reason: error };
    const values = figuresOf(subject.samples, bar.figure);
    if (values.some((value) => !Number.isFinite(value))) return notMeasured(bar, bar.figure);
    return decide(bar, { value: median(values), ...medianSpread(values) });
  }
  const peer = find(bar.peer);
  if (peer === undefined) return notMeasured(bar, bar.peer);
  const again = find(comparison.control?.again);
  const error = errorOf([subject, peer, ...(again === undefined ? [] : [again])]);
  if (error !== undefined) return { bar, verdict: "errors", reason: error };
  const ratio = ratioOf(subject, peer, bar.figure);
  if (!ratio.ok) return { bar, verdict: "not measured", reason: ratio.reason };
  if (again === undefined) return decide(bar, ratio);
  const control = ratioOf(subject, again, bar.figure);
  if (!control.ok) return { bar, verdict: "not measured", reason: control.reason };
  const scaled = {
    value: ratio.value / control.value,
    low: ratio.low / control.value,
    high: ratio.high / control.value,
  };
  return { ...decide(bar, scaled), control: control.value };
}

function notMeasured(bar: Bar, what: string): BarOutcome {
  return { bar, verdict: "not measured", reason: `there is no ${what}` };
}

function decide(
  bar: Bar,
  { value, low, high }: { readonly value: number; readonly low: number; readonly high: number },
): BarOutcome {
  const isSure = bar.bound === "at least" ? low >= bar.limit : high <= bar.limit;
  const isMissed = bar.bound === "at least" ? high < bar.limit : low > bar.limit;
  const verdict = isSure ? "pass" : isMissed ? "fail" : "undecided";
  return { bar, verdict, value, low, high };
}

/** 1 when a bar was missed or a run had errors, 2 when a bar is open, else 0. Without `check` only errors count. */
export function exitCodeOf(
  outcomes: readonly {
    readonly bars: readonly BarOutcome[];
    readonly contenders: readonly ContenderOutcome[];
  }[],
  isCheck: boolean,
): 0 | 1 | 2 {
  if (outcomes.some(({ contenders }) => errorOf(contenders) !== undefined)) return 1;
  if (!isCheck) return 0;
  const verdicts = outcomes.flatMap(({ bars }) => bars.map(({ verdict }) => verdict));
  if (verdicts.some((verdict) => verdict === "fail" || verdict === "errors")) return 1;
  // Nothing judged is nothing shown to hold.
  return verdicts.length === 0 || verdicts.some((verdict) => verdict !== "pass") ? 2 : 0;
}
