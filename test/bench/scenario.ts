// The words of the bench: what is measured, by whom, and which bar it is held against.

/** One figure by name, such as `tps`. */
export type Figures = Readonly<Record<string, number>>;

/** What one run of one contender gave. */
export interface Sample {
  /** Failed operations of any kind. With one of them nothing else in the sample counts. */
  readonly errorCount: number;
  /** The first of them in words. */
  readonly firstError?: string;
  readonly figures: Figures;
}

export interface Contender {
  readonly name: string;
  run(): Promise<Sample>;
}

/** A promise about one figure of the subject, or about its ratio to a peer's. */
export interface Bar {
  readonly figure: string;
  /** Name of the contender that promises. */
  readonly subject: string;
  /** Name of the contender it is divided by; absent when the figure itself is judged. */
  readonly peer?: string;
  readonly bound: "at least" | "at most";
  readonly limit: number;
}

/** Contenders that are run against each other in shuffled rounds. */
export interface Comparison {
  readonly name: string;
  readonly contenders: readonly Contender[];
  /** The subject a second time: what their ratio differs from 1 is noise. */
  readonly control?: { readonly subject: string; readonly again: string };
  readonly bars: readonly Bar[];
  /** Bars that this machine cannot measure, and why. */
  readonly missing?: readonly MissingPeer[];
}

export interface MissingPeer {
  readonly peer: string;
  readonly reason: string;
}

/** A unit and a direction for each figure, for tables. */
export interface FigureColumn {
  readonly figure: string;
  readonly title: string;
  readonly digits: number;
}

/** A line of the plot. */
export interface PlotSeries {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Plot {
  readonly title: string;
  readonly xTitle: string;
  readonly yTitle: string;
  readonly series: readonly PlotSeries[];
}

export interface BenchOptions {
  /** Seconds that one run is measured. */
  readonly seconds: number;
  readonly rounds: { readonly min: number; readonly max: number };
  /** Only comparisons whose name contains this text. */
  readonly only: string | undefined;
  /** Bars are judged, and what has none is left out. */
  readonly isCheck: boolean;
  readonly log: (line: string) => void;
}

/** What a scenario is given to work with. */
export interface Bench extends BenchOptions {
  /** Runs the rounds and keeps the outcome for the report; undefined when `only` or a check leaves it out. */
  compare(
    comparison: Comparison,
    rounds?: BenchOptions["rounds"],
  ): Promise<ComparisonOutcome | undefined>;
  /** Whether `only` names it. */
  wants(name: string): boolean;
  plot(plot: Plot): void;
  /** A sentence for the report: what was not measured, or is to be known. */
  note(text: string): void;
}

/** A scenario is a file: it starts what it needs, calls `compare`, and stops it again. */
export interface Scenario {
  readonly columns: readonly FigureColumn[];
  run(bench: Bench): Promise<void>;
}

export type Verdict = "pass" | "fail" | "undecided" | "errors" | "not measured";

export interface ContenderOutcome {
  readonly name: string;
  readonly samples: readonly Sample[];
}

export interface BarOutcome {
  readonly bar: Bar;
  readonly verdict: Verdict;
  /** The median that was judged, with its spread; absent when there was none to judge. */
  readonly value?: number;
  readonly low?: number;
  readonly high?: number;
  /** The A/A ratio it was divided by. */
  readonly control?: number;
  readonly reason?: string;
}

export interface ComparisonOutcome {
  readonly name: string;
  readonly contenders: readonly ContenderOutcome[];
  readonly control?: Comparison["control"];
  readonly bars: readonly BarOutcome[];
}
