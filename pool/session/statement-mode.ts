// What statement pooling refuses: it can't keep a transaction block on one server.
import type { PoolMode } from "../connections/startup-profile.ts";
import { READY_IDLE_FRAME, encodeErrorResponse } from "../wire/backend-messages.ts";
import { concatBytes } from "../wire/message-types.ts";
import type { Operation } from "./operation.ts";
import { classOf } from "./operation-class.ts";

const REFUSAL = encodeErrorResponse({
  severity: "ERROR",
  sqlState: "0A000",
  message: "transaction blocks are not allowed in statement pooling mode",
});
/** No transaction block is ever open in this mode. */
const QUERY_REFUSAL = concatBytes([REFUSAL, READY_IDLE_FRAME]);

export function judged(operation: Operation, poolMode: PoolMode): Operation {
  if (poolMode !== "statement" || classOf(operation)?.hasTransactionControl !== true) {
    return operation;
  }
  return operation.kind === "query"
    ? { kind: "refused_query", answer: QUERY_REFUSAL }
    : { kind: "fail", error: REFUSAL };
}
