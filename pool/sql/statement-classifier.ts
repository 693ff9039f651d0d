// Says what a statement text may do, from PostgreSQL's own grammar behind a cache. It decides nothing
// else: which server, and what a pin means, is for its callers.
import { withoutComments } from "./comments.ts";
import { maskLiterals } from "./mask-literals.ts";
import { type StatementClass, UNKNOWN_CLASS } from "./statement-class.ts";
import { effectOf, type StatementEffect } from "./statement-effect.ts";
import { statementParser } from "./statement-parser.ts";
import type { Statement } from "./syntax-tree.ts";
import { scanTokens, type TokenScan, WRITING_KEYWORDS } from "./token-scan.ts";

export { loadStatementParser } from "./statement-parser.ts";

/** A parse costs some 30 ns per character and blocks the thread: 64 k characters are about 50 ms at worst. */
const PARSED_LENGTH_MAX = 65_536;

/**
 * A token costs some 200 ns, and the scan blocks the thread: 2 M characters are about 200 ms at worst.
 * Longer texts are not looked at.
 */
const SCANNED_LENGTH_MAX = 2_097_152;

/** Longer texts are rarely sent twice: they hold values, not parameters. */
const CACHED_LENGTH_MAX = 4_096;

const CACHE_ENTRIES_MAX = 10_000;

/** All cached texts together, in characters: 10,000 usual ones, and a bound of 16 MB on hostile ones. */
const CACHED_LENGTH_TOTAL_MAX = 8_000_000;

export class StatementClassifier {
  /**
   * Two generations: what is used moves to the young one, and when that has half of the allowance the old one goes. A hit then costs one
   * lookup, where an exact order of use costs two changes of the map.
   */
  #young = new Map<string, StatementClass>();
  #old = new Map<string, StatementClass>();
  readonly #generationEntriesMax: number;
  /** Characters of the young generation's texts. */
  #youngLength = 0;

  constructor(options: { readonly cacheEntriesMax?: number } = {}) {
    const entriesMax = options.cacheEntriesMax ?? CACHE_ENTRIES_MAX;
    this.#generationEntriesMax = Math.ceil(entriesMax / 2);
  }

  /**
   * The class of the whole text, as of a simple Query; synchronous, and never fails on a text. Assumes
   * standard_conforming_strings = on. Throws a programmer error before `loadStatementParser` is through.
   */
  classify(text: string): StatementClass {
    const isShort = text.length <= CACHED_LENGTH_MAX;
    const key = (isShort ? maskLiterals(text) : undefined) ?? text;
    const cached = this.#young.get(key) ?? this.#promoted(key);
    if (cached !== undefined) return cached;
    const { verdict, isLasting } = decide(text);
    const result = Object.freeze(verdict);
    // A text may be refused for a value in it, which the key does not show.
    const isOfKey = key === text || result.pin !== "unparsed";
    if (isLasting && isShort && isOfKey) this.#remember(key, result);
    return result;
  }

  #promoted(key: string): StatementClass | undefined {
    const cached = this.#old.get(key);
    if (cached !== undefined) this.#remember(key, cached);
    return cached;
  }

  #remember(key: string, result: StatementClass): void {
    const isFull =
      this.#young.size >= this.#generationEntriesMax ||
      this.#youngLength + key.length > CACHED_LENGTH_TOTAL_MAX / 2;
    if (isFull) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngLength = 0;
    }
    this.#young.set(key, result);
    this.#youngLength += key.length;
  }
}

interface Decision {
  readonly verdict: StatementClass;
  /** False when the same text may get another answer later. */
  readonly isLasting: boolean;
}

function decide(text: string): Decision {
  const parser = statementParser();
  if (text.length > SCANNED_LENGTH_MAX) return { verdict: unreadable("too_long"), isLasting: true };
  const scan = scanTokens(text);
  // In the protocol a NUL ends the string: what is behind it might be hidden from the parser only.
  if (text.includes("\0")) return { verdict: unreadable("unparsed", scan), isLasting: true };
  if (scan.isPinFree && WRITING_KEYWORDS.has(scan.leadingKeyword)) {
    return { verdict: { ...UNKNOWN_CLASS }, isLasting: true };
  }
  if (text.length > PARSED_LENGTH_MAX || scan.isTooDeep) {
    const verdict = scan.isPinFree
      ? { ...UNKNOWN_CLASS, copy: scan.copy }
      : unreadable("too_long", scan);
    return { verdict, isLasting: true };
  }
  // WAIT FOR LSN of PostgreSQL 19 is not in this grammar. It reads a position and leaves nothing.
  if (scan.leadingKeyword === "wait" && scan.statementCount === 1) {
    return { verdict: { ...UNKNOWN_CLASS }, isLasting: true };
  }
  const outcome = parser.parse(withoutComments(text));
  return outcome.kind === "parsed"
    ? { verdict: classOf(outcome.statements), isLasting: true }
    : { verdict: unreadable("unparsed", scan), isLasting: outcome.kind === "refused" };
}

/** Every doubt on the safe side: the text may hold anything. */
function unreadable(pin: "unparsed" | "too_long", scan?: TokenScan): StatementClass {
  return {
    ...UNKNOWN_CLASS,
    pin,
    hasTransactionControl: true,
    statementCount: Math.max(1, scan?.statementCount ?? 1),
    copy: scan?.copy,
    chains: true,
  };
}

function classOf(statements: readonly Statement[]): StatementClass {
  const effects = statements.map(effectOf);
  const first = <K extends "pin" | "copy">(key: K): StatementEffect[K] | undefined =>
    effects.find((effect) => effect[key] !== undefined)?.[key];
  return {
    access: effects.every((effect) => effect.access === "read") ? "read" : "primary",
    pin: first("pin"),
    hasTransactionControl: effects.some((effect) => effect.transactionCommand !== undefined),
    statementCount: effects.length,
    copy: first("copy"),
    chains: effects.some((effect) => effect.chains),
    mayWrite: effects.some((effect) => effect.mayWrite),
    transactionCommand: effects.length === 1 ? effects[0]?.transactionCommand : undefined,
  };
}
