// What became of one statement, in a form that is the same for every way to send it.

/** Text as PostgreSQL wrote it. */
export type Cell = string | null;

/** The extended protocol with text parameters, or the simple one with the parameters written into the text. */
export type QueryMode = "simple" | "extended";

export interface SqlStatement {
  readonly text: string;
  readonly params: readonly Cell[];
}

export interface ResultField {
  readonly name: string;
  readonly dataTypeID: number;
  /** The rest is undefined where the door does not show it. */
  readonly tableID?: number;
  readonly columnID?: number;
  readonly dataTypeSize?: number;
  readonly dataTypeModifier?: number;
}

export interface SqlResult {
  readonly kind: "result";
  readonly fields: readonly ResultField[];
  readonly rows: readonly (readonly Cell[])[];
  /** First word of the command tag; empty for an empty statement. */
  readonly command: string;
  /** The number at the end of the command tag. */
  readonly rowCount: number | null;
  /** The whole command tag; undefined where the door does not show it, null for an empty statement. */
  readonly tag?: string | null | undefined;
}

type ErrorField =
  | "severity"
  | "code"
  | "message"
  | "detail"
  | "hint"
  | "position"
  | "internalPosition"
  | "internalQuery"
  | "where"
  | "schema"
  | "table"
  | "column"
  | "dataType"
  | "constraint"
  | "file"
  | "line"
  | "routine";

export interface SqlFailure {
  readonly kind: "error";
  /** "Error and Notice Message Fields" by node-postgres' names; null for what the server did not say. */
  readonly error: Readonly<Record<ErrorField, Cell>>;
}

export type SqlOutcome = SqlResult | SqlFailure;

/** What a door shows of an outcome: all, all but the whole command tag, or of the fields only names and types. */
export type View = "wire" | "sql" | "query";

export function seenBy(view: View, outcome: SqlOutcome): SqlOutcome {
  if (outcome.kind === "error" || view === "wire") return outcome;
  const { tag: _, ...result } = outcome;
  if (view === "sql") return result;
  return {
    ...result,
    fields: result.fields.map(({ name, dataTypeID }) => ({ name, dataTypeID })),
  };
}

/** What both query modes must agree on: not the places in the text, which differs, nor what is said about parameters. */
export function ofBothModes(outcome: SqlOutcome): unknown {
  if (outcome.kind === "result") return outcome;
  const { severity, code, message, schema, table, column, dataType, constraint } = outcome.error;
  return { severity, code, message, schema, table, column, dataType, constraint };
}

/** Writes the parameters into the text, as a caller of the simple protocol does. */
export function inlined({ text, params }: SqlStatement): string {
  return text.replace(/\$(\d+)/g, (placeholder, digits: string) => {
    const value = params[Number(digits) - 1];
    if (value === undefined) return placeholder;
    // A literal whose type is as unknown as that of a parameter; standard_conforming_strings is on.
    return value === null ? "NULL" : `'${value.replaceAll("'", "''")}'`;
  });
}

/** `error` is an error object of a driver or the JSON of one; throws when it has no SQLSTATE. */
export function failureOf(error: unknown): SqlFailure {
  const read = (name: string): Cell => {
    const value: unknown = typeof error === "object" && error !== null && Reflect.get(error, name);
    return typeof value === "string" ? value : null;
  };
  if (!/^[0-9A-Z]{5}$/.test(read("code") ?? "")) {
    throw new Error("it failed for another reason than SQL", { cause: error });
  }
  return {
    kind: "error",
    error: {
      severity: read("severity"),
      code: read("code"),
      message: read("message"),
      detail: read("detail"),
      hint: read("hint"),
      position: read("position"),
      internalPosition: read("internalPosition"),
      internalQuery: read("internalQuery"),
      where: read("where"),
      schema: read("schema"),
      table: read("table"),
      column: read("column"),
      dataType: read("dataType"),
      constraint: read("constraint"),
      file: read("file"),
      line: read("line"),
      routine: read("routine"),
    },
  };
}
