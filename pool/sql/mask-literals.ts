// Replaces the values in a statement text, so that texts which differ in nothing else share one entry of the class cache.

/** Not 0: a grammar rule refuses it where a precision stands (`float(0)`). */
const NUMBER_MASK = 0x31;

const QUOTE = 0x27;
const DOUBLE_QUOTE = 0x22;
const DOLLAR = 0x24;
const AMPERSAND = 0x26;
const HYPHEN = 0x2d;
const SLASH = 0x2f;
const ASTERISK = 0x2a;
const SEMICOLON = 0x3b;
const PARENTHESIS = 0x28;

const Kind = { PLAIN: 0, WORD: 1, DIGIT: 2, SPECIAL: 3, SPACE: 4 } as const;

/** Of each byte. Those of letters beyond ASCII belong to words. */
const KINDS = new Uint8Array(256).fill(Kind.WORD);
for (let byte = 0; byte < 128; byte++) {
  const character = String.fromCharCode(byte);
  if (/[0-9]/.test(character)) KINDS[byte] = Kind.DIGIT;
  else if (/['"$\-/;\0]/.test(character)) KINDS[byte] = Kind.SPECIAL;
  else if (/[ \t\n\v\f\r]/.test(character)) KINDS[byte] = Kind.SPACE;
  else if (!/[A-Za-z_]/.test(character)) KINDS[byte] = Kind.PLAIN;
}

/**
 * What begins statements whose class no value in them decides. In others it may: EXPLAIN (ANALYZE 0) reads what EXPLAIN (ANALYZE 1)
 * writes.
 */
const MASKED_KEYWORDS: ReadonlySet<number> = new Set(
  ["select", "insert", "update", "delete", "with", "values"].map((word) =>
    new TextEncoder().encode(word).reduce(pack, 0),
  ),
);
const MASKED_KEYWORD_BYTES_MAX = 6;

/** Five bits of each letter, which are the same in both cases. */
function pack(packed: number, byte: number): number {
  return (packed << 5) | (byte & 31);
}

/**
 * Writes the text in `source` from `start` to `end` to `target`, which must have room for all of it, with every number and every plain
 * string replaced, and returns the masked length; or -1 when it is another kind of statement, or several, or holds anything whose end
 * takes more than a look: comments, dollar quotes, prefixed strings, numbers with letters. What is left has the same tokens in the
 * same places, so PostgreSQL's grammar takes both texts alike. Assumes standard_conforming_strings = on.
 */
export function maskLiterals(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
): number {
  if (!isMaskedStatement(source, start, end)) return -1;
  let length = 0;
  let at = start;
  while (at < end) {
    const byte = source[at] ?? 0;
    const kind = KINDS[byte] ?? 0;
    const next = endOfToken(source, at, end, kind);
    if (next < 0) return -1;
    if (kind === Kind.DIGIT) {
      target[length++] = NUMBER_MASK;
    } else if (byte === QUOTE) {
      target[length++] = QUOTE;
      target[length++] = QUOTE;
    } else {
      for (; at < next; at++) target[length++] = source[at] ?? 0;
    }
    at = next;
  }
  return length;
}

function isMaskedStatement(source: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at < end && (source[at] === PARENTHESIS || kindAt(source, at, end) === Kind.SPACE)) at++;
  const wordEnd = Math.min(endOfWord(source, at, end), at + MASKED_KEYWORD_BYTES_MAX + 1);
  if (wordEnd - at > MASKED_KEYWORD_BYTES_MAX) return false;
  let packed = 0;
  for (; at < wordEnd; at++) {
    if (KINDS[source[at] ?? 0] !== Kind.WORD) return false;
    packed = pack(packed, source[at] ?? 0);
  }
  return MASKED_KEYWORDS.has(packed);
}

function byteAt(source: Uint8Array, at: number, end: number): number {
  return at < end ? (source[at] ?? 0) : 0;
}

function kindAt(source: Uint8Array, at: number, end: number): number {
  return at < end ? (KINDS[source[at] ?? 0] ?? 0) : Kind.PLAIN;
}

function endOfToken(source: Uint8Array, from: number, end: number, kind: number): number {
  switch (kind) {
    case Kind.WORD: {
      const at = endOfWord(source, from, end);
      // E'...', U&"...", N'...' and the like, where the string is not plain or not the word's own.
      const next = byteAt(source, at, end);
      const isPrefix = next === AMPERSAND && isQuote(byteAt(source, at + 1, end));
      return next === QUOTE || isPrefix ? -1 : at;
    }
    case Kind.DIGIT:
      return endOfNumber(source, from, end);
    case Kind.SPECIAL:
      return endOfSpecial(source, from, end);
    default:
      return from + 1;
  }
}

function endOfWord(source: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const byte = source[at] ?? 0;
    const kind = KINDS[byte] ?? 0;
    if (kind !== Kind.WORD && kind !== Kind.DIGIT && byte !== DOLLAR) return at;
    at++;
  }
  return at;
}

/** A run of digits, or -1 when something else of a word or string follows at once. */
function endOfNumber(source: Uint8Array, from: number, end: number): number {
  let at = from + 1;
  while (kindAt(source, at, end) === Kind.DIGIT) at++;
  const next = byteAt(source, at, end);
  const isPlain = kindAt(source, at, end) !== Kind.WORD && next !== DOLLAR && !isQuote(next);
  return isPlain ? at : -1;
}

/** Behind a string, a quoted name, a parameter or a lone symbol; -1 for a comment, a dollar quote or an unterminated one. */
function endOfSpecial(source: Uint8Array, from: number, end: number): number {
  const byte = byteAt(source, from, end);
  const next = byteAt(source, from + 1, end);
  switch (byte) {
    case QUOTE:
    case DOUBLE_QUOTE:
      return endOfQuoted(source, from, end, byte);
    case DOLLAR:
      return KINDS[next] === Kind.DIGIT ? endOfNumber(source, from + 1, end) : -1;
    case HYPHEN:
      return next === HYPHEN ? -1 : from + 1;
    case SEMICOLON:
      return isOnlySpace(source, from + 1, end) ? from + 1 : -1;
    case SLASH:
      return next === ASTERISK ? -1 : from + 1;
    default:
      return -1;
  }
}

function isOnlySpace(source: Uint8Array, from: number, end: number): boolean {
  for (let at = from; at < end; at++) if (KINDS[source[at] ?? 0] !== Kind.SPACE) return false;
  return true;
}

/** A doubled quote stands for one. */
function endOfQuoted(source: Uint8Array, from: number, end: number, quote: number): number {
  let at = from + 1;
  while (at < end) {
    if (source[at] !== quote) at++;
    else if (byteAt(source, at + 1, end) === quote) at += 2;
    else return at + 1;
  }
  return -1;
}

function isQuote(byte: number): boolean {
  return byte === QUOTE || byte === DOUBLE_QUOTE;
}
