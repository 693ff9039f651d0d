// The errors that the pool raises itself, one class with a closed set of causes; server errors pass through as bytes and never become one of these.

/** Stable internal names; public surfaces show the SQLSTATE. */
export type PoolErrorCode =
  | "ERR_QUERY_WAIT_TIMEOUT"
  | "ERR_WAIT_QUEUE_FULL"
  | "ERR_CANCELED"
  | "ERR_NO_SERVER"
  | "ERR_CONNECT_FAILED"
  | "ERR_CONNECT_TIMEOUT"
  | "ERR_SERVER_LOGIN_REFUSED"
  | "ERR_SERVER_PROTOCOL"
  | "ERR_CONNECTION_LOST"
  | "ERR_PROTOCOL_VIOLATION"
  | "ERR_NOT_SUPPORTED"
  | "ERR_LIMIT_EXCEEDED"
  | "ERR_SHUTTING_DOWN";

export interface PoolErrorOptions {
  readonly sqlState: string;
  readonly severity?: "ERROR" | "FATAL";
  readonly hint?: string;
  readonly cause?: unknown;
  /** An ErrorResponse frame that a server sent in place of serving us; forwarded unchanged where a client can take it. */
  readonly serverError?: Uint8Array;
}

/** `message` is written for the client as well as the log: it never holds SQL, parameters or credentials. */
export class PoolError extends Error {
  override readonly name = "PoolError";
  readonly code: PoolErrorCode;
  readonly sqlState: string;
  readonly severity: "ERROR" | "FATAL";
  readonly hint: string | undefined;
  readonly serverError: Uint8Array | undefined;

  constructor(code: PoolErrorCode, message: string, options: PoolErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.sqlState = options.sqlState;
    this.severity = options.severity ?? "ERROR";
    this.hint = options.hint;
    this.serverError = options.serverError;
  }
}
