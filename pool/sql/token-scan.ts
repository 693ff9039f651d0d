// Proofs about a statement text from its tokens alone, for texts that needn't or mustn't be parsed.
import { mayPin } from "./function-effects.ts";
import { NestingBound } from "./nesting-bound.ts";
import { isTemporarySchema } from "./temporary-schema.ts";
import { SETTINGS_VIEW } from "./tree-findings.ts";
import { TokenReader } from "./token-reader.ts";

export interface TokenScan {
  /** The first word in lower case, behind any opening parentheses; "" if the text starts otherwise. */
  readonly leadingKeyword: string;
  /** Parts between semicolons that hold a token: at least the statements that there are. */
  readonly statementCount: number;
  /**
   * One statement, read without doubt, whose leading keyword can't begin anything that pins, with no
   * name in it that could.
   */
  readonly isPinFree: boolean;
  /** Nested more deeply than the parser can stand. */
  readonly isTooDeep: boolean;
  /** Direction of a COPY with the client; undefined for other statements too. */
  readonly copy: "in" | "out" | undefined;
}

/** They write anyway, so that only a pin is left to be found. */
export const WRITING_KEYWORDS: ReadonlySet<string> = new Set([
  "delete",
  "insert",
  "merge",
  "update",
]);

const QUERY_KEYWORDS: ReadonlySet<string> = new Set(["copy", "select", "table", "values", "with"]);

/** SELECT INTO these creates a temporary table. INSERT INTO temp is about a table of that name. */
const TEMPORARY_WORDS: ReadonlySet<string> = new Set(["temp", "temporary", "local", "global"]);

export function scanTokens(text: string): TokenScan {
  const tokens = new TokenReader(text);
  const nesting = new NestingBound();
  const copy = new CopyDirection();
  let leadingKeyword: string | undefined;
  let statementCount = 0;
  let isInStatement = false;
  let isSuspicious = false;
  let followsInto = false;
  while (tokens.next()) {
    nesting.add(tokens);
    const { kind, symbol, name } = tokens;
    if (symbol === ";") {
      isInStatement = false;
      continue;
    }
    if (!isInStatement) statementCount += 1;
    isInStatement = true;
    if (symbol !== "(") leadingKeyword ??= kind === "word" ? name : "";
    isSuspicious ||= kind === "broken" || kind === "unicode_name";
    isSuspicious ||=
      name !== "" && (mayPin(name) || isTemporarySchema(name) || name === SETTINGS_VIEW);
    isSuspicious ||=
      followsInto && TEMPORARY_WORDS.has(name) && QUERY_KEYWORDS.has(leadingKeyword ?? "");
    followsInto = kind === "word" && name === "into";
    copy.add(tokens);
  }
  const keyword = leadingKeyword ?? "";
  const canBePinFree = WRITING_KEYWORDS.has(keyword) || QUERY_KEYWORDS.has(keyword);
  return {
    leadingKeyword: keyword,
    statementCount,
    isPinFree: canBePinFree && statementCount === 1 && !isSuspicious,
    isTooDeep: nesting.isTooDeep,
    copy: keyword === "copy" ? copy.direction : undefined,
  };
}

/** FROM or TO outside parentheses, followed by STDIN or STDOUT: PostgreSQL takes either with both. */
class CopyDirection {
  direction: "in" | "out" | undefined;
  #depth = 0;
  #preposition = "";

  add(tokens: TokenReader): void {
    const { symbol } = tokens;
    if (symbol === "(") this.#depth += 1;
    if (symbol === ")") this.#depth -= 1;
    if (this.#depth > 0 || this.direction !== undefined) return;
    const name = tokens.kind === "word" ? tokens.name : "";
    if (name === "stdin" || name === "stdout") {
      if (this.#preposition === "from") this.direction = "in";
      if (this.#preposition === "to") this.direction = "out";
    }
    this.#preposition = name;
  }
}
