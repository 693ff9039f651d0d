// Replaces the values in a statement text, so that texts which differ in nothing else share one entry of the class cache.

/** Not 0: a grammar rule refuses it where a precision stands (`float(0)`). */
const NUMBER_MASK = "1";
const STRING_MASK = "''";

const QUOTE = 0x27;
const DOUBLE_QUOTE = 0x22;
const DOLLAR = 0x24;
const HYPHEN = 0x2d;
const SLASH = 0x2f;
const ASTERISK = 0x2a;
const SEMICOLON = 0x3b;

/**
 * Statements whose class no value in them decides. In others it may: EXPLAIN (ANALYZE 0) reads what EXPLAIN (ANALYZE 1) writes.
 */
const MASKED_STATEMENT = /^[\s(]*(?:select|insert|update|delete|with|values)\b/i;

/** By code unit below 128: 0 nothing special, 1 begins or continues a word, 2 a digit, 3 needs a look. */
const KINDS = new Uint8Array(128);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  if (/[A-Za-z_]/.test(character)) KINDS[code] = 1;
  else if (/[0-9]/.test(character)) KINDS[code] = 2;
  else if (/['"$\-/;\0]/.test(character)) KINDS[code] = 3;
}

/** Letters beyond ASCII belong to words. */
function kindOf(code: number): number {
  return code < 128 ? (KINDS[code] ?? 0) : 1;
}

/**
 * The text with every number and every plain string replaced, or undefined when it is another kind of statement, or several, or holds
 * anything whose end takes more than a look: comments, dollar quotes, prefixed strings, numbers with letters. What is left has the same tokens in the same places, so PostgreSQL's
 * grammar takes both texts alike. Assumes standard_conforming_strings = on.
 */
export function maskLiterals(text: string): string | undefined {
  if (!MASKED_STATEMENT.test(text)) return undefined;
  let masked = "";
  let copied = 0;
  let at = 0;
  while (at < text.length) {
    const kind = kindOf(text.charCodeAt(at));
    if (kind === 0) {
      at++;
      continue;
    }
    if (kind === 1) {
      at = endOfWord(text, at);
      // E'...', U&"...", N'...' and the like, where the string is not plain or not the word's own.
      const next = text.charCodeAt(at);
      if (next === QUOTE || (next === 0x26 && isQuote(text.charCodeAt(at + 1)))) return undefined;
      continue;
    }
    const end = kind === 2 ? endOfNumber(text, at) : endOfSpecial(text, at);
    if (end < 0) return undefined;
    const isMasked = kind === 2 || text.charCodeAt(at) === QUOTE;
    if (isMasked) {
      masked += text.slice(copied, at) + (kind === 2 ? NUMBER_MASK : STRING_MASK);
      copied = end;
    }
    at = end;
  }
  return copied === 0 ? text : masked + text.slice(copied);
}

function endOfWord(text: string, from: number): number {
  let at = from + 1;
  for (;;) {
    const code = text.charCodeAt(at);
    // NaN at the end of the text is no word either.
    if (!(code >= 0) || (kindOf(code) !== 1 && kindOf(code) !== 2 && code !== DOLLAR)) return at;
    at++;
  }
}

/** A run of digits, or -1 when something else of a word or string follows at once. */
function endOfNumber(text: string, from: number): number {
  let at = from + 1;
  while (kindOf(text.charCodeAt(at)) === 2) at++;
  const next = text.charCodeAt(at);
  const isPlain = !(next >= 0) || (kindOf(next) !== 1 && next !== DOLLAR && !isQuote(next));
  return isPlain ? at : -1;
}

/** Behind a string, a quoted name, a parameter or a lone symbol; -1 for a comment, a dollar quote or an unterminated one. */
function endOfSpecial(text: string, from: number): number {
  const code = text.charCodeAt(from);
  const next = text.charCodeAt(from + 1);
  switch (code) {
    case QUOTE:
    case DOUBLE_QUOTE:
      return endOfQuoted(text, from, code === QUOTE ? "'" : '"');
    case DOLLAR:
      return kindOf(next) === 2 ? endOfNumber(text, from + 1) : -1;
    case HYPHEN:
      return next === HYPHEN ? -1 : from + 1;
    case SEMICOLON:
      return text.slice(from + 1).trim() === "" ? from + 1 : -1;
    case SLASH:
      return next === ASTERISK ? -1 : from + 1;
    default:
      return -1;
  }
}

/** A doubled quote stands for one. */
function endOfQuoted(text: string, from: number, quote: string): number {
  let close = text.indexOf(quote, from + 1);
  while (close >= 0 && text.charAt(close + 1) === quote) close = text.indexOf(quote, close + 2);
  return close < 0 ? -1 : close + 1;
}

function isQuote(code: number): boolean {
  return code === QUOTE || code === DOUBLE_QUOTE;
}
