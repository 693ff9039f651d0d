// Writes the cells of rows as JSON: as PostgreSQL's text, or decoded where the type is built in. Pure.
import type { JsonBytes } from "./json-bytes.ts";

export interface RowFormat {
  /** Rows as arrays; else as objects, in which the last of two equal names wins. */
  readonly isArray: boolean;
  /** Cells as PostgreSQL's text; else decoded by type. */
  readonly isRawText: boolean;
}

/** Writes the cell that lies in `source` from `start` to `end`; never NULL. */
export type CellWriter = (out: JsonBytes, source: Uint8Array, start: number, end: number) => void;

const encoder = new TextEncoder();
export const NULL = encoder.encode("null");
const TRUE = encoder.encode("true");
const FALSE = encoder.encode("false");

const text: CellWriter = (out, source, start, end) => out.quoted(source, start, end);
/** Valid JSON as PostgreSQL writes it. */
const verbatim: CellWriter = (out, source, start, end) => out.json(source, start, end);
/** Digits and a sign. */
const integer: CellWriter = (out, source, start, end) => out.raw(source, start, end);
const boolean: CellWriter = (out, source, start) => out.raw(source[start] === 0x74 ? TRUE : FALSE);
/** NaN and the infinities have no JSON number. */
const float: CellWriter = (out, source, start, end) => {
  const first = source[start] === MINUS ? source[start + 1] : source[start];
  if (first !== undefined && first >= DIGIT_0 && first <= DIGIT_9) out.raw(source, start, end);
  else out.quoted(source, start, end);
};

const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** OIDs of pg_type.dat; every other type is shown as its text, int8 and numeric too, which JSON readers would round. */
const SCALARS: ReadonlyMap<number, CellWriter> = new Map([
  [16, boolean],
  [21, integer],
  [23, integer],
  [114, verbatim],
  [700, float],
  [701, float],
  [3802, verbatim],
]);

/** Array types by the writer of their elements. box[] is not here: its elements are parted by semicolons. */
const ARRAYS: ReadonlyMap<number, CellWriter> = new Map([
  [1000, boolean],
  [1005, integer],
  [1007, integer],
  [199, verbatim],
  [1021, float],
  [1022, float],
  [3807, verbatim],
  ...[
    // bytea char name int8 text oid tid xid cid bpchar varchar xml
    1001, 1002, 1003, 1016, 1009, 1028, 1010, 1011, 1012, 1014, 1015, 143,
    // point lseg path circle polygon line money macaddr macaddr8 inet cidr
    1017, 1018, 1019, 719, 1027, 629, 791, 1040, 775, 1041, 651,
    // timestamp date time timestamptz interval timetz numeric bit varbit
    1115, 1182, 1183, 1185, 1187, 1270, 1231, 1561, 1563,
    // uuid pg_lsn tsvector tsquery jsonpath int2vector oidvector
    2951, 3221, 3643, 3645, 4073, 1006, 1013,
    // regproc regprocedure regoper regoperator regclass regtype regrole regnamespace
    1008, 2207, 2208, 2209, 2210, 2211, 4097, 4090,
    // int4range numrange tsrange tstzrange daterange int8range
    3905, 3907, 3909, 3911, 3913, 3927,
  ].map((oid) => [oid, text] as const),
]);

export function cellWriter(oid: number, isRawText: boolean): CellWriter {
  if (isRawText) return text;
  const element = ARRAYS.get(oid);
  if (element === undefined) return SCALARS.get(oid) ?? text;
  return (out, source, start, end) => writeArray(out, source, start, end, element);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const EQUALS = 0x3d;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * PostgreSQL's array text as a JSON array ("Array Input and Output Syntax"). It comes from a server, so it is not checked.
 *
 *   {1,NULL,"a \"b\""}  ─►  [1,null,"a \"b\""]
 */
function writeArray(
  out: JsonBytes,
  source: Uint8Array,
  start: number,
  end: number,
  element: CellWriter,
): void {
  let at = start;
  // In front of an array whose lower bounds are not 1: `[0:2]={…}`.
  if (source[at] === OPEN_BRACKET) at = endOf(source, at, end, EQUALS, EQUALS) + 1;
  while (at < end) {
    const byte = source[at];
    if (byte === OPEN_BRACE || byte === CLOSE_BRACE || byte === COMMA) {
      out.byte(byte === OPEN_BRACE ? OPEN_BRACKET : byte === CLOSE_BRACE ? CLOSE_BRACKET : COMMA);
      at++;
    } else if (byte === QUOTE) {
      at = writeQuoted(out, source, at + 1, end, element) + 1;
    } else {
      const last = endOf(source, at, end, COMMA, CLOSE_BRACE);
      if (isNull(source, at, last)) out.raw(NULL);
      else element(out, source, at, last);
      at = last;
    }
  }
}

/** Returns where the closing quote is. */
function writeQuoted(
  out: JsonBytes,
  source: Uint8Array,
  start: number,
  end: number,
  element: CellWriter,
): number {
  let at = start;
  let escapes = 0;
  while (at < end && source[at] !== QUOTE) {
    if (source[at] === BACKSLASH) {
      escapes++;
      at++;
    }
    at++;
  }
  const last = Math.min(at, end);
  if (escapes === 0) {
    element(out, source, start, last);
    return last;
  }
  const plain = new Uint8Array(last - start);
  let length = 0;
  for (let from = start; from < last; from++) {
    if (source[from] === BACKSLASH && from + 1 < last) from++;
    plain[length++] = source[from] ?? 0;
  }
  element(out, plain, 0, length);
  return last;
}

function endOf(bytes: Uint8Array, start: number, end: number, a: number, b: number): number {
  let at = start;
  while (at < end && bytes[at] !== a && bytes[at] !== b) at++;
  return at;
}

function isNull(source: Uint8Array, start: number, end: number): boolean {
  return (
    end - start === 4 &&
    source[start] === 0x4e &&
    source[start + 1] === 0x55 &&
    source[start + 2] === 0x4c &&
    source[start + 3] === 0x4c
  );
}
