// Pieces of SQL with their parameters, and how they join into one numbered statement.

import { encodeParam } from "./params.ts";

/** SQL text with $1 … $n, and the text of each parameter. */
export interface Statement {
  readonly text: string;
  readonly params: readonly (string | null)[];
}

/** PostgreSQL's lexer would read such a character next to $1 as part of the number or of a name. */
const WORD_CHARACTER = /[\w$\u0080-\uffff]/;

/**
 * Objects that stand for a fragment inside a template; null: for a text whose $n cannot be
 * renumbered.
 */
const STAND_INS = new WeakMap<object, Fragment | null>();

/**
 * A piece of SQL made by a template. It runs nothing; interpolated into another template, its text
 * and parameters become part of that one. Values are encoded when the fragment is made, so later
 * changes to them do not matter.
 */
export class Fragment {
  readonly #strings: readonly string[];
  readonly #values: readonly (Fragment | string | null)[];

  /**
   * @throws TypeError when not called as a template tag, or for a value that cannot be a parameter.
   */
  constructor(strings: TemplateStringsArray, values: readonly unknown[]) {
    // A caller without types may write db("… " + input), which must never be taken for SQL.
    if (!Array.isArray(strings) || !("raw" in strings)) {
      throw new TypeError("use a template (db`…`) or db.query(text, params)");
    }
    this.#strings = strings;
    this.#values = values.map(
      (value, index) => fragmentOf(value, index) ?? encodeParam(value, index),
    );
  }

  /** The whole statement, with placeholders numbered from 1 in the order of the text. */
  toStatement(): Statement {
    const builder = new StatementBuilder();
    this.#appendTo(builder);
    return { text: builder.text, params: builder.params };
  }

  #appendTo(builder: StatementBuilder): void {
    for (const [index, string] of this.#strings.entries()) {
      builder.appendText(string);
      const value = this.#values[index];
      if (value instanceof Fragment) {
        value.#appendTo(builder);
      } else if (value !== undefined) {
        builder.appendParam(value);
      }
    }
  }
}

class StatementBuilder {
  text: string = "";
  readonly params: (string | null)[] = [];
  #endsWithPlaceholder = false;

  appendText(text: string): void {
    if (text === "") {
      return;
    }
    if (this.#endsWithPlaceholder && WORD_CHARACTER.test(text.charAt(0))) {
      this.text += " ";
    }
    this.text += text;
    this.#endsWithPlaceholder = false;
  }

  appendParam(param: string | null): void {
    this.params.push(param);
    if (WORD_CHARACTER.test(this.text.slice(-1))) {
      this.text += " ";
    }
    this.text += `$${this.params.length}`;
    this.#endsWithPlaceholder = true;
  }
}

/** Lets `owner` be interpolated as `fragment`; with null, interpolating it is refused. */
export function standFor(owner: object, fragment: Fragment | null): void {
  STAND_INS.set(owner, fragment);
}

function fragmentOf(value: unknown, index: number): Fragment | null {
  if (value instanceof Fragment) {
    return value;
  }
  const fragment = typeof value === "object" && value !== null ? STAND_INS.get(value) : undefined;
  if (fragment === null) {
    throw new TypeError(
      `the value at index ${index} is a db.query(), whose $n cannot be renumbered; use a template`,
    );
  }
  return fragment ?? null;
}
