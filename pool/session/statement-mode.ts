// What statement pooling refuses: it can't keep a transaction block on one server.
import type { PoolMode } from "../connections/startup-profile.ts";
import { READY_IDLE_FRAME, encodeErrorResponse } from "../wire/backend-messages.ts";
import { concatBytes } from "../wire/message-types.ts";
import type { Operation } from "./operation.ts";
import { classOf } from "./operation-class.ts";

function refusal(message: string): Uint8Array {
  return encodeErrorResponse({ severity: "ERROR", sqlState: "0A000", message });
}

const BLOCK_REFUSAL = refusal("transaction blocks are not allowed in statement pooling mode");
/** It is not read, so it might open a transaction block. */
const LENGTH_REFUSAL = refusal("statements over 64 KB are not allowed in statement pooling mode");

export function judged(operation: Operation, poolMode: PoolMode): Operation {
  if (poolMode !== "statement") return operation;
  const statementClass = classOf(operation);
  // PostgreSQL says what is wrong with a text that does not parse.
  if (statementClass?.hasTransactionControl !== true || statementClass.pin === "unparsed") {
    return operation;
  }
  const error = statementClass.pin === "too_long" ? LENGTH_REFUSAL : BLOCK_REFUSAL;
  // No transaction block is ever open in this mode.
  return operation.kind === "query"
    ? { kind: "refused_query", answer: concatBytes([error, READY_IDLE_FRAME]) }
    : { kind: "fail", error };
}
