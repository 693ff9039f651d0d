// The one place that turns an SQLSTATE into an HTTP status, and the end of a WebSocket into its close code.

/** Whole SQLSTATEs, which win over their class. */
const STATUS_BY_SQLSTATE: ReadonlyMap<string, number> = new Map([
  // The request did not make sense; the other errors of class 08 are losses behind us.
  ["08P01", 400],
  ["23503", 409],
  ["23505", 409],
  ["42501", 403],
  // A caller's own transaction control inside a batch.
  ["2D000", 400],
  // Cancelled, or out of time.
  ["57014", 504],
  // Trying again is the answer that PostgreSQL documents.
  ["40001", 409],
  ["40P01", 409],
  ["P0001", 400],
]);

/** By class, the first two characters; PostgREST's table, where it fits callers who write their own SQL. */
const STATUS_BY_CLASS: ReadonlyMap<string, number> = new Map([
  ["08", 503],
  ["09", 500],
  ["0L", 403],
  ["0P", 403],
  ["25", 400],
  ["28", 401],
  ["2D", 500],
  ["38", 500],
  ["39", 500],
  ["3B", 500],
  ["40", 500],
  ["53", 503],
  ["54", 413],
  ["55", 500],
  ["57", 503],
  ["58", 500],
  ["F0", 500],
  ["HV", 500],
  ["P0", 500],
  ["XX", 500],
]);

const CLASS_LENGTH = 2;

/** For `/v1/*`. Whatever is not listed is about what the caller asked for. */
export function httpStatusOf(sqlState: string): number {
  return (
    STATUS_BY_SQLSTATE.get(sqlState) ?? STATUS_BY_CLASS.get(sqlState.slice(0, CLASS_LENGTH)) ?? 400
  );
}

/** The only status whose body the serverless driver reads as an error; all of `/sql` answers with it. */
export const DRIVER_ERROR_STATUS = 400;

/** Close codes of RFC 6455, "Defined Status Codes". */
export const CloseCode = {
  NORMAL: 1000,
  GOING_AWAY: 1001,
  /** A text message: the protocol is binary. */
  UNSUPPORTED_DATA: 1003,
  INTERNAL_ERROR: 1011,
} as const;
