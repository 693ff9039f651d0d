// What a client is told when the connection that served it is lost.
import type { BackendConnection } from "../backend/backend-connection.ts";
import type { PoolError } from "../errors.ts";
import { Fate } from "../exchange/reply-plan.ts";
import { READY_IDLE_FRAME, encodeErrorResponse } from "../wire/backend-messages.ts";
import { concatBytes } from "../wire/message-types.ts";

export interface LossAnswer {
  /** The session can't go on: `bytes` is the last thing said. */
  readonly isFatal: boolean;
  /** Undefined when nothing is owed, or nothing can be said inside a half-sent message. */
  readonly bytes: Uint8Array | undefined;
  /** The client has not sent its Sync yet. */
  readonly isSkipping: boolean;
}

/** Why an error text says more than the server's own. */
const OUTCOME_UNKNOWN = "The outcome of a statement that was running is not known.";

/**
 * Outside a transaction each request still owed an answer gets one error, and the session goes on. Inside one the client may already
 * have sent statements that must not run without it, so the session ends, as it does when PostgreSQL closes the connection.
 */
export function lossAnswer(
  backend: BackendConnection,
  error: PoolError,
  isPinned: boolean,
): LossAnswer {
  if (backend.isMidForward) return { isFatal: true, bytes: undefined, isSkipping: false };
  const isFatal = isPinned || backend.mayBeInTransaction;
  const bytes = encodeErrorResponse({
    severity: isFatal ? "FATAL" : "ERROR",
    sqlState: error.sqlState,
    message: error.message,
    detail: isFatal ? undefined : OUTCOME_UNKNOWN,
  });
  if (isFatal) return { isFatal, bytes, isSkipping: false };
  const { plan } = backend;
  const pieces: Uint8Array[] = [];
  for (let i = 0; i < plan.readyOwed; i++) {
    const hasError = i === 0 && plan.hasHeadFailed && (plan.headFate & Fate.HIDE_SUCCESS) === 0;
    if (!hasError) pieces.push(bytes);
    pieces.push(READY_IDLE_FRAME);
  }
  if (backend.isUnsynced && !plan.isSkipping) pieces.push(bytes);
  return {
    isFatal,
    bytes: pieces.length === 0 ? undefined : concatBytes(pieces),
    isSkipping: backend.isUnsynced,
  };
}
