// An error as the HTTP door shows it: the fields of an ErrorResponse by their names in node-postgres, whether PostgreSQL or the gateway raised it.
import type { AuthFailure } from "#auth/identity.ts";
import type { PoolError } from "#pool/errors.ts";
import { type ErrorFields, OWN_ROUTINE, readErrorFields } from "#pool/wire/backend-messages.ts";

/** All keys are always there; null where PostgreSQL said nothing. Positions and line numbers are text. */
export interface ServerError {
  readonly message: string;
  /** The SQLSTATE. */
  readonly code: string;
  readonly detail: string | null;
  readonly hint: string | null;
  readonly position: string | null;
  readonly internalPosition: string | null;
  readonly internalQuery: string | null;
  readonly severity: string;
  readonly where: string | null;
  readonly table: string | null;
  readonly column: string | null;
  readonly schema: string | null;
  readonly dataType: string | null;
  readonly constraint: string | null;
  readonly file: string | null;
  readonly line: string | null;
  readonly routine: string | null;
}

export interface OwnErrorOptions {
  readonly severity?: "ERROR" | "FATAL";
  readonly detail?: string;
  readonly hint?: string | undefined;
}

/** For fields that a server left out, against the protocol. */
const UNKNOWN_SQLSTATE = "XX000";

/** `fields` by their letters ("Error and Notice Message Fields"). */
export function serverErrorOf(fields: ErrorFields): ServerError {
  const get = (letter: string): string | null => fields.get(letter) ?? null;
  return {
    message: get("M") ?? "the server gave no message",
    code: get("C") ?? UNKNOWN_SQLSTATE,
    detail: get("D"),
    hint: get("H"),
    position: get("P"),
    internalPosition: get("p"),
    internalQuery: get("q"),
    // V is never translated, S is.
    severity: get("V") ?? get("S") ?? "ERROR",
    where: get("W"),
    table: get("t"),
    column: get("c"),
    schema: get("s"),
    dataType: get("d"),
    constraint: get("n"),
    file: get("F"),
    line: get("L"),
    routine: get("R"),
  };
}

/** `message` never holds SQL text, parameters or credentials. */
export function ownError(
  code: string,
  message: string,
  { severity = "ERROR", detail, hint }: OwnErrorOptions = {},
): ServerError {
  const fields = new Map([
    ["V", severity],
    ["C", code],
    ["M", message],
    ["R", OWN_ROUTINE],
  ]);
  if (detail !== undefined) fields.set("D", detail);
  if (hint !== undefined) fields.set("H", hint);
  return serverErrorOf(fields);
}

export function authError({ sqlState, clientMessage }: AuthFailure): ServerError {
  return ownError(sqlState, clientMessage, { severity: "FATAL" });
}

/** What a server said in place of serving us goes on unchanged. */
export function poolError(error: PoolError): ServerError {
  if (error.serverError !== undefined) return serverErrorOf(readErrorFields(error.serverError));
  return ownError(error.sqlState, error.message, { severity: error.severity, hint: error.hint });
}
