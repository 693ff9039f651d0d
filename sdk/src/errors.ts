// The errors a caller can tell apart. None ever contains a token, a parameter value or a response
// body.

/**
 * Fields of a PostgreSQL error, as the gateway passes them on; undefined where the server said
 * nothing.
 */
export interface DatabaseErrorFields {
  /** SQLSTATE, five characters. */
  readonly code: string;
  readonly severity: string | undefined;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
  /** Position in the statement text, counted in characters from 1. */
  readonly position: string | undefined;
  readonly internalPosition: string | undefined;
  readonly internalQuery: string | undefined;
  readonly where: string | undefined;
  readonly schema: string | undefined;
  readonly table: string | undefined;
  readonly column: string | undefined;
  readonly dataType: string | undefined;
  readonly constraint: string | undefined;
  readonly file: string | undefined;
  readonly line: string | undefined;
  readonly routine: string | undefined;
}

/**
 * PostgreSQL, or the gateway in front of it, refused the statement. Field names are those of `pg`.
 */
export class DatabaseError extends Error implements DatabaseErrorFields {
  override readonly name: string = "DatabaseError";
  /** HTTP status the error came with. */
  readonly status: number;
  readonly code: string;
  readonly severity: string | undefined;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
  readonly position: string | undefined;
  readonly internalPosition: string | undefined;
  readonly internalQuery: string | undefined;
  readonly where: string | undefined;
  readonly schema: string | undefined;
  readonly table: string | undefined;
  readonly column: string | undefined;
  readonly dataType: string | undefined;
  readonly constraint: string | undefined;
  readonly file: string | undefined;
  readonly line: string | undefined;
  readonly routine: string | undefined;

  constructor(message: string, status: number, fields: DatabaseErrorFields) {
    super(message);
    this.status = status;
    this.code = fields.code;
    this.severity = fields.severity;
    this.detail = fields.detail;
    this.hint = fields.hint;
    this.position = fields.position;
    this.internalPosition = fields.internalPosition;
    this.internalQuery = fields.internalQuery;
    this.where = fields.where;
    this.schema = fields.schema;
    this.table = fields.table;
    this.column = fields.column;
    this.dataType = fields.dataType;
    this.constraint = fields.constraint;
    this.file = fields.file;
    this.line = fields.line;
    this.routine = fields.routine;
  }
}

/**
 * No complete answer arrived; `cause` is what fetch threw. Whether the statement ran is unknown,
 * unless the cause says that no connection came about.
 */
export class ConnectionError extends Error {
  override readonly name: string = "ConnectionError";
  /** SQLSTATE connection_failure. */
  readonly code: string = "08006";

  constructor(origin: string, cause: unknown) {
    super(`no complete answer from ${origin}`, { cause });
  }
}

/** `timeoutMs` passed before the whole answer was there. Whether the statement ran is unknown. */
export class TimeoutError extends Error {
  override readonly name: string = "TimeoutError";
  /** SQLSTATE query_canceled, which a statement_timeout has as well. */
  readonly code: string = "57014";
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super(`no complete answer within ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}

/**
 * Something answered, but not as the gateway does: a proxy, a load balancer, a captive portal, a
 * wrong URL.
 */
export class UnexpectedResponseError extends Error {
  override readonly name: string = "UnexpectedResponseError";
  /** SQLSTATE protocol_violation. */
  readonly code: string = "08P01";
  /** HTTP status; 0 where the runtime hides a redirect. */
  readonly status: number;
  readonly contentType: string | null;
  /** What the `Server` or `Via` header calls the party that answered. */
  readonly answeredBy: string | null;

  constructor(status: number, contentType: string | null, answeredBy: string | null) {
    const party = answeredBy === null ? "an unnamed party" : `"${answeredBy}"`;
    super(
      `not an answer of the gateway: HTTP ${status}, ${contentType ?? "no content type"}, from ${party}`,
    );
    this.status = status;
    this.contentType = contentType;
    this.answeredBy = answeredBy;
  }
}

/** `one()` or `maybe()` got another number of rows than it promises. */
export class RowCountError extends Error {
  override readonly name: string = "RowCountError";
  /** SQLSTATE: no_data_found (P0002) or cardinality_violation (21000). */
  readonly code: string;
  readonly rowCount: number;

  constructor(expected: string, rowCount: number) {
    super(`expected ${expected}, got ${rowCount} rows`);
    this.code = rowCount === 0 ? "P0002" : "21000";
    this.rowCount = rowCount;
  }
}

/** A session has too many queries waiting; nothing was sent. */
export class QueueFullError extends Error {
  override readonly name: string = "QueueFullError";
  /** SQLSTATE too_many_connections, the gateway's own code for a full queue. */
  readonly code: string = "53300";

  constructor(waitersMax: number) {
    super(`${waitersMax} queries of this session are waiting already`);
  }
}
