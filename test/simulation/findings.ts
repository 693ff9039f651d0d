// What a run found wrong: the first violation counts, for whatever comes after it may be its consequence.
import type { Trace } from "./trace.ts";

/** What must hold at every moment of every run. */
export type Invariant =
  | "one owner"
  | "own answers"
  | "no state carried over"
  | "no waiter forgotten"
  | "limits held"
  | "no read older than its token"
  | "valid protocol"
  | "no bug reported";

export interface Violation {
  readonly invariant: Invariant;
  readonly detail: string;
}

export class Findings {
  violation: Violation | undefined;
  readonly #trace: Trace;

  constructor(trace: Trace) {
    this.#trace = trace;
  }

  report(invariant: Invariant, detail: string): void {
    this.#trace.note(`VIOLATION ${invariant}: ${detail}`);
    this.violation ??= { invariant, detail };
  }
}
