// PostgreSQL array literals: text to nested arrays and back ("Array Input and Output Syntax" in the
// manual).

/** PostgreSQL's MAXDIM: no array has more dimensions, so deeper nesting is a cycle or a mistake. */
const DIMENSIONS_MAX = 6;

/** An array of any dimension; null is SQL NULL. */
export type NestedArray<T> = (T | null | NestedArray<T>)[];

/**
 * Writes an array literal. Each element goes through `toText`; null stays NULL, everything else is
 * quoted, which is right for any element type and keeps the word NULL, braces and commas apart from
 * syntax.
 *
 * @throws TypeError when nested deeper than PostgreSQL's six dimensions.
 */
export function encodeArray(
  items: readonly unknown[],
  toText: (item: unknown) => string | null,
  depth: number = 1,
): string {
  if (depth > DIMENSIONS_MAX) {
    throw new TypeError(`an array has more than ${DIMENSIONS_MAX} dimensions`);
  }
  const parts: string[] = [];
  // An index loop, since map() and join() would skip the holes of a sparse array.
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    if (Array.isArray(item)) {
      parts.push(encodeArray(item, toText, depth + 1));
    } else {
      const text = toText(item);
      parts.push(text === null ? "NULL" : `"${text.replace(/["\\]/g, "\\$&")}"`);
    }
  }
  return `{${parts.join(",")}}`;
}

/**
 * Reads an array literal as PostgreSQL prints it with the delimiter `,`. Lower bounds other than 1
 * (`[0:1]={…}`) are dropped, as JavaScript arrays have none.
 *
 * @throws SyntaxError when the text is not an array literal.
 */
export function parseArray<T>(text: string, parseElement: (text: string) => T): NestedArray<T> {
  return new ArrayParser(text, parseElement).parse();
}

class ArrayParser<T> {
  readonly #text: string;
  readonly #parseElement: (text: string) => T;
  #index: number;

  constructor(text: string, parseElement: (text: string) => T) {
    this.#text = text;
    this.#parseElement = parseElement;
    this.#index = text.startsWith("[") ? text.indexOf("=") + 1 : 0;
  }

  parse(): NestedArray<T> {
    const items = this.#list(1);
    if (this.#index !== this.#text.length) {
      throw malformed();
    }
    return items;
  }

  #list(depth: number): NestedArray<T> {
    if (depth > DIMENSIONS_MAX || this.#text[this.#index] !== "{") {
      throw malformed();
    }
    this.#index += 1;
    const items: NestedArray<T> = [];
    if (this.#text[this.#index] === "}") {
      this.#index += 1;
      return items;
    }
    for (;;) {
      items.push(this.#item(depth));
      const delimiter = this.#text[this.#index];
      this.#index += 1;
      if (delimiter === "}") {
        return items;
      }
      if (delimiter !== ",") {
        throw malformed();
      }
    }
  }

  #item(depth: number): T | null | NestedArray<T> {
    const first = this.#text[this.#index];
    if (first === "{") {
      return this.#list(depth + 1);
    }
    return first === '"' ? this.#parseElement(this.#quoted()) : this.#bare();
  }

  #quoted(): string {
    let value = "";
    let start = this.#index + 1;
    for (let index = start; index < this.#text.length; index += 1) {
      const character = this.#text[index];
      if (character === '"') {
        this.#index = index + 1;
        return value + this.#text.slice(start, index);
      }
      if (character === "\\") {
        value += this.#text.slice(start, index);
        start = index + 1;
        // The escaped character itself is taken as it is, even a quote or a backslash.
        index += 1;
      }
    }
    throw malformed();
  }

  #bare(): T | null {
    const start = this.#index;
    let end = start;
    while (end < this.#text.length && !isSyntax(this.#text[end])) {
      end += 1;
    }
    if (end === start) {
      throw malformed();
    }
    this.#index = end;
    const word = this.#text.slice(start, end);
    return word === "NULL" ? null : this.#parseElement(word);
  }
}

function isSyntax(character: string | undefined): boolean {
  return character === "," || character === "{" || character === "}" || character === '"';
}

/** Names no part of the text, since that is the caller's data. */
function malformed(): SyntaxError {
  return new SyntaxError("malformed array literal");
}
