// Understands the gateway's answers: rows, or an error. What has another shape did not come from
// the gateway.

import { decoderOf } from "./decode.ts";
import { DatabaseError, UnexpectedResponseError } from "./errors.ts";
import type { HttpAnswer } from "./transport.ts";

/**
 * A row as an object. Of columns with equal names the last one wins; `columns` still lists them
 * all.
 */
export type Row = Record<string, unknown>;

export interface Column {
  readonly name: string;
  /** OID of the PostgreSQL type. */
  readonly type: number;
}

/** Everything the gateway says about one statement. */
export interface Result<R extends object = Row> {
  readonly rows: R[];
  /** Rows returned or changed; null for statements that count none, such as CREATE TABLE. */
  readonly rowCount: number | null;
  /** First word of PostgreSQL's command tag, such as "INSERT". */
  readonly command: string;
  readonly columns: readonly Column[];
  /** Read-after-write token: a later read that carries it sees this statement's changes. */
  readonly token: string | null;
  /** "primary" or "replica:<name>". */
  readonly servedBy: string | null;
}

const STATUS_OK = 200;
const STATUS_ERROR_MIN = 400;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/**
 * The decoded result.
 *
 * @throws DatabaseError for an error of PostgreSQL or the gateway; UnexpectedResponseError for
 * anything else.
 */
export function readAnswer(answer: HttpAnswer): Result {
  const body = parseJson(answer.body);
  const understood = answer.status === STATUS_OK ? toResult(body, answer) : toError(body, answer);
  if (understood instanceof DatabaseError) {
    throw understood;
  }
  if (understood === null) {
    throw new UnexpectedResponseError(answer.status, answer.contentType, answer.answeredBy);
  }
  return understood;
}

/** undefined, which JSON has no word for, when the text is not JSON: an intermediary's page. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toError(body: unknown, answer: HttpAnswer): DatabaseError | null {
  if (answer.status < STATUS_ERROR_MIN || !isRecord(body)) {
    return null;
  }
  const message = body["message"];
  const code = body["code"];
  if (typeof message !== "string" || typeof code !== "string" || !SQLSTATE.test(code)) {
    return null;
  }
  const field = (name: string): string | undefined => {
    const value = body[name];
    return typeof value === "string" ? value : undefined;
  };
  return new DatabaseError(message, answer.status, {
    code,
    severity: field("severity"),
    detail: field("detail"),
    hint: field("hint"),
    position: field("position"),
    internalPosition: field("internalPosition"),
    internalQuery: field("internalQuery"),
    where: field("where"),
    schema: field("schema"),
    table: field("table"),
    column: field("column"),
    dataType: field("dataType"),
    constraint: field("constraint"),
    file: field("file"),
    line: field("line"),
    routine: field("routine"),
  });
}

function toResult(body: unknown, answer: HttpAnswer): Result | null {
  if (!isRecord(body)) {
    return null;
  }
  const columns = body["columns"];
  const rows = body["rows"];
  const command = body["command"];
  const rowCount = body["rowCount"];
  if (!isArrayOf(columns, isColumn) || !isArrayOf(rows, isTextRow)) {
    return null;
  }
  if (rows.some((row) => row.length !== columns.length)) {
    return null;
  }
  if (typeof command !== "string" || (typeof rowCount !== "number" && rowCount !== null)) {
    return null;
  }
  const { token, servedBy } = answer;
  return { rows: decodeRows(columns, rows), rowCount, command, columns, token, servedBy };
}

function decodeRows(columns: readonly Column[], rows: readonly TextRow[]): Row[] {
  const decoders = columns.map((column) => decoderOf(column.type));
  return rows.map((row) =>
    // fromEntries defines properties, so that a column named __proto__ is only a column.
    Object.fromEntries(
      columns.map((column, index) => {
        const text = row[index] ?? null;
        return [column.name, text === null ? null : decoders[index]?.(text)];
      }),
    ),
  );
}

type TextRow = readonly (string | null)[];

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isArrayOf<T>(value: unknown, isItem: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(isItem);
}

function isColumn(value: unknown): value is Column {
  return isRecord(value) && typeof value["name"] === "string" && typeof value["type"] === "number";
}

function isCell(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

function isTextRow(value: unknown): value is TextRow {
  return isArrayOf(value, isCell);
}
