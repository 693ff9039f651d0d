// Counts query texts, to tell which come often enough to be worth a prepared statement.
import type { StatementClass } from "#pool/sql/statement-class.ts";

/** Longer texts hold values rather than parameters, and are rarely sent twice. */
const TEXT_LENGTH_MAX = 4_096;

/** Counted at a time; past it counting begins anew, and what is frequent is frequent again soon. */
const TEXTS_MAX = 10_000;
/** Of those together, in characters. */
const TEXTS_LENGTH_MAX = 8_000_000;

/**
 * What PostgreSQL keeps a plan for, and what can't commit on its way: a statement that fails has done nothing, so that it may run again.
 * CALL and DO are not among them.
 */
const PLANNED_STATEMENT = /^[\s(]*(?:select|insert|update|delete|merge|with|values|table)\b/i;

/** Instead of a count: it is never to be prepared. */
const NEVER = -1;

export class RepeatedTexts {
  readonly #threshold: number;
  readonly #classify: (text: string) => StatementClass;
  #counts = new Map<string, number>();
  #length = 0;

  /** `threshold`: what comes for the so many-th time is frequent; 0: nothing ever is. */
  constructor(threshold: number, classify: (text: string) => StatementClass) {
    this.#threshold = threshold;
    this.#classify = classify;
  }

  /** Counts the text once more; true when it comes often, and preparing it changes nothing but the speed. */
  isFrequent(text: string): boolean {
    if (this.#threshold === 0 || text.length > TEXT_LENGTH_MAX) return false;
    const before = this.#counts.get(text) ?? this.#begin(text);
    if (before === NEVER) return false;
    if (before < this.#threshold) this.#counts.set(text, before + 1);
    return before + 1 >= this.#threshold;
  }

  /** How often the text has come before, as far as it matters. */
  #begin(text: string): number {
    if (this.#counts.size >= TEXTS_MAX || this.#length + text.length > TEXTS_LENGTH_MAX) {
      this.#counts = new Map();
      this.#length = 0;
    }
    const count = this.#mayBePrepared(text) ? 0 : NEVER;
    this.#counts.set(text, count);
    this.#length += text.length;
    return count;
  }

  #mayBePrepared(text: string): boolean {
    if (!PLANNED_STATEMENT.test(text)) return false;
    const { pin, hasTransactionControl } = this.#classify(text);
    return pin === undefined && !hasTransactionControl;
  }
}
