// Writes rows as JSON text: cells as PostgreSQL's text, or decoded where the type is built in. Pure.

/** A column by the keys that node-postgres gives it. */
export interface Field {
  readonly name: string;
  readonly tableID: number;
  readonly columnID: number;
  readonly dataTypeID: number;
  readonly dataTypeSize: number;
  readonly dataTypeModifier: number;
  readonly format: "text";
}

export interface RowFormat {
  /** Rows as arrays; else as objects, in which the last of two equal names wins. */
  readonly isArray: boolean;
  /** Cells as PostgreSQL's text; else decoded by type. */
  readonly isRawText: boolean;
}

/** The JSON text of one row. */
export type RowEncoder = (cells: readonly (string | null)[]) => string;

type CellEncoder = (text: string) => string;

const text: CellEncoder = (value) => JSON.stringify(value);
/** Valid JSON as PostgreSQL writes it. */
const verbatim: CellEncoder = (value) => value;
const boolean: CellEncoder = (value) => (value === "t" ? "true" : "false");
/** NaN and the infinities have no JSON number. */
const float: CellEncoder = (value) => (/[a-df-z]/i.test(value) ? JSON.stringify(value) : value);

/** OIDs of pg_type.dat; every other type is shown as its text, int8 and numeric too, which JSON readers would round. */
const SCALARS: ReadonlyMap<number, CellEncoder> = new Map([
  [16, boolean],
  [21, verbatim],
  [23, verbatim],
  [114, verbatim],
  [700, float],
  [701, float],
  [3802, verbatim],
]);

/** Array types by the encoder of their elements. box[] is not here: its elements are parted by semicolons. */
const ARRAYS: ReadonlyMap<number, CellEncoder> = new Map([
  [1000, boolean],
  [1005, verbatim],
  [1007, verbatim],
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

function cellEncoder(oid: number, isRawText: boolean): CellEncoder {
  if (isRawText) return text;
  const element = ARRAYS.get(oid);
  if (element !== undefined) return (value) => arrayJson(value, element);
  return SCALARS.get(oid) ?? text;
}

/** The encoder for the rows of one result. */
export function rowEncoder(fields: readonly Field[], format: RowFormat): RowEncoder {
  const encoders = fields.map(({ dataTypeID }) => cellEncoder(dataTypeID, format.isRawText));
  const encode = (cells: readonly (string | null)[], index: number): string => {
    const cell = cells[index] ?? null;
    return cell === null ? "null" : (encoders[index] ?? text)(cell);
  };
  if (format.isArray) {
    return (cells) => `[${cells.map((_, index) => encode(cells, index)).join(",")}]`;
  }
  const lastByName = new Map(fields.map(({ name }, index) => [name, index]));
  const members = [...lastByName].map(([name, index]) => ({ key: JSON.stringify(name), index }));
  return (cells) =>
    `{${members.map(({ key, index }) => `${key}:${encode(cells, index)}`).join(",")}}`;
}

/** In front of an array whose lower bounds are not 1: `[0:2]={…}`. */
const BOUNDS = /^(\[-?\d+:-?\d+\])+=/;

/**
 * PostgreSQL's array text as a JSON array ("Array Input and Output Syntax"). It comes from a server, so it is not checked.
 *
 *   {1,NULL,"a \"b\""}  ─►  [1,null,"a \"b\""]
 */
export function arrayJson(value: string, element: (text: string) => string): string {
  const source = value.replace(BOUNDS, "");
  let json = "";
  let at = 0;
  while (at < source.length) {
    const char = source[at] ?? "";
    if (char === "{" || char === "}" || char === ",") {
      json += char === "{" ? "[" : char === "}" ? "]" : ",";
      at++;
    } else if (char === '"') {
      const end = endOfQuoted(source, at + 1);
      json += element(source.slice(at + 1, end).replace(/\\(.)/gs, "$1"));
      at = end + 1;
    } else {
      const end = endOfBare(source, at);
      const bare = source.slice(at, end);
      json += bare === "NULL" ? "null" : element(bare);
      at = end;
    }
  }
  return json;
}

function endOfQuoted(source: string, from: number): number {
  let at = from;
  while (at < source.length && source[at] !== '"') at += source[at] === "\\" ? 2 : 1;
  return at;
}

function endOfBare(source: string, from: number): number {
  let at = from;
  while (at < source.length && source[at] !== "," && source[at] !== "}") at++;
  return at;
}
