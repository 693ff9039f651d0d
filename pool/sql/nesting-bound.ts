// An upper bound on the depth of the tree that a text parses to, from its tokens: the parser writes
// its tree recursively, and must not be given a text that overflows its stack.
import type { TokenReader } from "./token-reader.ts";

/**
 * In tokens. The parser's stack ends at about 7,500 levels while it is interpreted; compiled it gets
 * deeper, and then needs a second to fail. One token adds at most one level.
 */
const NESTING_MAX = 4_000;

/** Behind them a list or a flat chain goes on, so what stood before them holds nothing deeper. */
const FLAT_SEPARATORS: ReadonlySet<string> = new Set(["and", "or", "when"]);

/** Each nests all that stood before it one level deeper. */
const LEFT_DEEP_SEPARATORS: ReadonlySet<string> = new Set(["except", "intersect", "join", "union"]);

interface Level {
  /** Tokens since the last separator. */
  run: number;
  /** Left-deep separators so far. */
  chain: number;
}

export class NestingBound {
  /** Set once the bound has been over the limit. */
  isTooDeep = false;
  #levels: Level[] = [{ run: 0, chain: 0 }];
  #total = 0;
  #isLabel = false;

  /** Takes the tokens of a text one after the other. */
  add(tokens: TokenReader): void {
    const symbol = tokens.symbol;
    // Behind a dot or AS a word is a name: `t.end`, `AS case`.
    const keyword = tokens.kind === "word" && !this.#isLabel ? tokens.name : "";
    this.#isLabel = symbol === "." || keyword === "as";
    if (symbol === ";") {
      this.#levels = [{ run: 0, chain: 0 }];
      this.#total = 0;
    } else if (symbol === "(" || symbol === "[" || keyword === "case") {
      this.#grow("run");
      this.#levels.push({ run: 0, chain: 0 });
    } else if (symbol === ")" || symbol === "]" || keyword === "end") {
      this.#close();
    } else if (symbol === "," || FLAT_SEPARATORS.has(keyword)) {
      this.#endRun();
    } else if (LEFT_DEEP_SEPARATORS.has(keyword)) {
      this.#endRun();
      this.#grow("chain");
    } else {
      this.#grow("run");
    }
    if (this.#total > NESTING_MAX) this.isTooDeep = true;
  }

  #grow(count: keyof Level): void {
    const level = this.#levels.at(-1);
    if (level === undefined) return;
    level[count] += 1;
    this.#total += 1;
  }

  #endRun(): void {
    const level = this.#levels.at(-1);
    if (level === undefined) return;
    this.#total -= level.run;
    level.run = 0;
  }

  #close(): void {
    const level = this.#levels.length > 1 ? this.#levels.pop() : undefined;
    if (level !== undefined) this.#total -= level.run + level.chain;
  }
}
