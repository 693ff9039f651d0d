// Says what a statement text may do, from PostgreSQL's own grammar behind a cache. It decides nothing
// else: which server, and what a pin means, is for its callers.
import { utf8 } from "../wire/text.ts";
import { withoutComments } from "./comments.ts";
import { maskLiterals } from "./mask-literals.ts";
import { type StatementClass, UNKNOWN_CLASS } from "./statement-class.ts";
import { effectOf, type StatementEffect } from "./statement-effect.ts";
import { statementParser } from "./statement-parser.ts";
import type { Statement } from "./syntax-tree.ts";
import { TextTable } from "./text-table.ts";
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
const CACHED_BYTES_MAX = 4_096;

const CACHE_ENTRIES_MAX = 10_000;

/** All cached texts together: 10,000 usual ones, and a bound on hostile ones. */
const CACHED_BYTES_TOTAL_MAX = 8_000_000;

/** The class of a text, and what else its words tell. Frozen, and shared as the class is. */
export interface TextFacts {
  readonly class: StatementClass;
  /** SET LOCAL or set_config occurs in it, of which the latter may be for the transaction only. */
  readonly maySetLocally: boolean;
  /** RESET ALL occurs in it. */
  readonly resetsAll: boolean;
}

const LOCAL_SETTING = /\bset\s+local\b|\bset_config\b/i;
const RESET_ALL = /\breset\s+all\b/i;

const encoder = new TextEncoder();

export class StatementClassifier {
  readonly #cache: TextTable<TextFacts>;
  // The text at hand, in UTF-8 and masked. A character of JavaScript's has at most three bytes.
  readonly #encoded = new Uint8Array(3 * CACHED_BYTES_MAX);
  readonly #masked = new Uint8Array(CACHED_BYTES_MAX);

  constructor(options: { readonly cacheEntriesMax?: number } = {}) {
    const entriesMax = options.cacheEntriesMax ?? CACHE_ENTRIES_MAX;
    this.#cache = new TextTable({ entriesMax, bytesMax: CACHED_BYTES_TOTAL_MAX });
  }

  /**
   * The class of the whole text, as of a simple Query; synchronous, and never fails on a text. Assumes
   * standard_conforming_strings = on. Throws a programmer error before `loadStatementParser` is through.
   */
  classify(text: string): StatementClass {
    if (text.length > CACHED_BYTES_MAX) return Object.freeze(decide(text).verdict);
    const { written } = encoder.encodeInto(text, this.#encoded);
    return this.read(this.#encoded, 0, written).class;
  }

  /** As `classify`, for the UTF-8 text in `source` from `start` to `end`. */
  read(source: Uint8Array, start: number, end: number): TextFacts {
    if (end - start > CACHED_BYTES_MAX) {
      const text = utf8(source, start, end);
      return factsOf(decide(text).verdict, text);
    }
    const maskedLength = maskLiterals(source, start, end, this.#masked);
    if (maskedLength < 0) return this.#factsOfKey(source, start, end, source, start, end);
    return this.#factsOfKey(this.#masked, 0, maskedLength, source, start, end);
  }

  #factsOfKey(
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    source: Uint8Array,
    start: number,
    end: number,
  ): TextFacts {
    const known = this.#cache.find(key, keyStart, keyEnd);
    if (known !== undefined) return known;
    const text = utf8(source, start, end);
    const keyText = utf8(key, keyStart, keyEnd);
    const { verdict, isLasting } = decide(text);
    const facts = factsOf(verdict, keyText);
    // A text may be refused for a value in it, which the key does not show.
    const isOfKey = keyText === text || verdict.pin !== "unparsed";
    if (isLasting && isOfKey) this.#cache.keep(key, keyStart, keyEnd, facts);
    return facts;
  }
}

function factsOf(verdict: StatementClass, words: string): TextFacts {
  return Object.freeze({
    class: Object.freeze(verdict),
    maySetLocally: LOCAL_SETTING.test(words),
    resetsAll: RESET_ALL.test(words),
  });
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
