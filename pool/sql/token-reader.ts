// Splits a statement text into tokens by PostgreSQL's lexical rules, in linear time and without
// building anything: for questions that must not cost a parse. It knows no grammar.
//
// PostgreSQL manual, "SQL Syntax: Lexical Structure", with standard_conforming_strings on. A session
// that turned it off reads '\' in plain strings differently; such a session may not use this reader.

export type TokenKind =
  /** Unquoted identifier or keyword. */
  | "word"
  /** "..." */
  | "quoted_name"
  /** U&"...", whose escapes are not resolved here. */
  | "unicode_name"
  | "string"
  | "number"
  /** $1 */
  | "parameter"
  /** One character of an operator or punctuation. */
  | "symbol"
  /** Unterminated, or read differently by different PostgreSQL versions; the last token. */
  | "broken";

const BLANK = /[ \t\n\r\f\v]*/y;
const WORD = /[A-Za-z_\u0080-\uffff][A-Za-z0-9_$\u0080-\uffff]*/y;
const DIGITS = "[0-9](?:_?[0-9])*";
/** In `1..2` the dots are an operator's. */
const NUMBER = new RegExp(
  "0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|" +
    `(?:${DIGITS}(?:\\.(?!\\.)(?:${DIGITS})?)?|\\.${DIGITS})(?:[eE][+-]?${DIGITS})?`,
  "y",
);
/** Behind a number: an error from PostgreSQL 15 on, and a token of its own before that. */
const JUNK_START = /[A-Za-z_'"$\u0080-\uffff]/;
const PARAMETER = /\$[0-9]+/y;
const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$/y;
const SPACE = 0x20;
const HYPHEN = 0x2d;
const SLASH = 0x2f;
const LINE_END = /[\n\r]|$/g;
const COMMENT_EDGE = /\/\*|\*\//g;
const ESCAPE_STRING_EDGE = /['\\]/g;

export class TokenReader {
  kind: TokenKind = "symbol";
  /** Offsets of the current token in UTF-16 code units; `end` is exclusive. */
  start = 0;
  end = 0;
  /** The identifier as PostgreSQL compares it, folded if it was unquoted; "" for other tokens. */
  name = "";
  /** The character of a symbol; "" for other tokens. */
  symbol = "";
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Moves to the next token; false at the end of the text and behind a broken token. */
  next(): boolean {
    if (this.kind === "broken") return false;
    this.start = skipBlanksAndComments(this.#text, this.end);
    if (this.start === this.#text.length) return false;
    const end = this.start < 0 ? -1 : this.#readToken(this.start);
    if (end < 0) {
      this.kind = "broken";
      this.start = this.#text.length;
    }
    this.end = end < 0 ? this.#text.length : end;
    this.name = this.#nameOfToken();
    this.symbol = this.kind === "symbol" ? this.#text.charAt(this.start) : "";
    return true;
  }

  #nameOfToken(): string {
    if (this.kind === "word") return this.#text.slice(this.start, this.end).toLowerCase();
    if (this.kind !== "quoted_name") return "";
    return this.#text.slice(this.start + 1, this.end - 1).replaceAll('""', '"');
  }

  /** Sets the kind and returns the end of the token at `at`, or -1 if it is broken. */
  #readToken(at: number): number {
    const text = this.#text;
    const character = text.charAt(at);
    const wordEnd = matchEnd(WORD, text, at);
    if (wordEnd === at + 1) {
      const literalEnd = this.#readPrefixed(at);
      if (literalEnd !== undefined) return literalEnd;
    }
    if (wordEnd > 0) return this.#as("word", wordEnd);
    if (character === "'") return this.#as("string", endOfQuoted(text, at, "'"));
    if (character === '"') return this.#as("quoted_name", endOfQuoted(text, at, '"'));
    if (character === "$") return this.#readDollar(at);
    const numberEnd = matchEnd(NUMBER, text, at);
    if (numberEnd < 0) return this.#as("symbol", at + 1);
    return this.#as("number", JUNK_START.test(text.charAt(numberEnd)) ? -1 : numberEnd);
  }

  /** A literal that starts with a letter, such as E'...'; undefined if this letter is a word. */
  #readPrefixed(at: number): number | undefined {
    const text = this.#text;
    const letter = text.charAt(at).toLowerCase();
    const next = text.charAt(at + 1);
    if (next === "'" && letter === "e") return this.#as("string", endOfEscapeString(text, at + 1));
    // B'' and X'' follow the rules of plain strings. N'' is a word and a plain string.
    if (next === "'" && "bx".includes(letter)) {
      return this.#as("string", endOfQuoted(text, at + 1, "'"));
    }
    const quote = text.charAt(at + 2);
    if (next !== "&" || letter !== "u" || (quote !== "'" && quote !== '"')) return undefined;
    const kind = quote === "'" ? "string" : "unicode_name";
    return this.#as(kind, endOfQuoted(text, at + 2, quote));
  }

  #readDollar(at: number): number {
    const parameterEnd = matchEnd(PARAMETER, this.#text, at);
    if (parameterEnd > 0) return this.#as("parameter", parameterEnd);
    const bodyStart = matchEnd(DOLLAR_QUOTE, this.#text, at);
    if (bodyStart < 0) return this.#as("symbol", at + 1);
    const tag = this.#text.slice(at, bodyStart);
    const bodyEnd = this.#text.indexOf(tag, bodyStart);
    return this.#as("string", bodyEnd < 0 ? -1 : bodyEnd + tag.length);
  }

  #as(kind: TokenKind, end: number): number {
    this.kind = kind;
    return end;
  }
}

/** The end of a match that starts exactly at `at`, or -1. */
function matchEnd(sticky: RegExp, text: string, at: number): number {
  sticky.lastIndex = at;
  return sticky.test(text) ? sticky.lastIndex : -1;
}

/** The start of the next match at or behind `at`, or -1. */
function findNext(global: RegExp, text: string, at: number): number {
  global.lastIndex = at;
  return global.exec(text)?.index ?? -1;
}

/** The offset of the next token, or of the text's end; -1 in an unterminated comment. */
function skipBlanksAndComments(text: string, from: number): number {
  let at = from;
  while (true) {
    // Most tokens follow without any: a megabyte of VALUES is half as dear for this test.
    if (text.charCodeAt(at) <= SPACE) at = matchEnd(BLANK, text, at);
    const code = text.charCodeAt(at);
    if (code !== HYPHEN && code !== SLASH) return at;
    if (text.startsWith("--", at)) {
      at = findNext(LINE_END, text, at);
    } else if (text.startsWith("/*", at)) {
      at = endOfBlockComment(text, at);
      if (at < 0) return -1;
    } else {
      return at;
    }
  }
}

/** Block comments nest. */
function endOfBlockComment(text: string, from: number): number {
  let depth = 0;
  let at = from;
  do {
    at = findNext(COMMENT_EDGE, text, at);
    if (at < 0) return -1;
    depth += text.charAt(at) === "/" ? 1 : -1;
    at += 2;
  } while (depth > 0);
  return at;
}

/** `at` is the opening quote; a doubled quote stands for one. */
function endOfQuoted(text: string, at: number, quote: string): number {
  let close = text.indexOf(quote, at + 1);
  while (close >= 0 && text.charAt(close + 1) === quote) close = text.indexOf(quote, close + 2);
  return close < 0 ? -1 : close + 1;
}

/**
 * `at` is the opening quote of E'...'. Backslashes escape here, also in a part that continues the
 * string on another line: E'a' <newline> 'b\'c' is one string.
 */
function endOfEscapeString(text: string, at: number): number {
  let edge = at;
  while (true) {
    edge = findNext(ESCAPE_STRING_EDGE, text, edge + 1);
    if (edge < 0) return -1;
    if (text.charAt(edge) === "\\" || text.charAt(edge + 1) === "'") {
      edge += 1;
    } else {
      const continued = startOfContinuation(text, edge + 1);
      if (continued < 0) return edge + 1;
      edge = continued;
    }
  }
}

/** The quote that continues a string whose part ended at `from`, or -1. */
function startOfContinuation(text: string, from: number): number {
  let at = matchEnd(BLANK, text, from);
  while (text.startsWith("--", at)) at = matchEnd(BLANK, text, findNext(LINE_END, text, at));
  const isOnAnotherLine = /[\n\r]/.test(text.slice(from, at));
  return isOnAnotherLine && text.charAt(at) === "'" ? at : -1;
}
