// Answers the questions of load balancers: does the process live, and can it serve.
import type { GatewayContext } from "../session/gateway-context.ts";
import { jsonAnswer, toResponse } from "./http-answer.ts";

/** 200 as long as the process answers at all. */
export function healthAnswer(): Response {
  return toResponse(jsonAnswer(200, '{"status":"ok"}'));
}

/** 200 when a primary of every database is known and no stop is under way; else 503 and the databases that lack one. */
export function readyAnswer({ clusters }: GatewayContext, isDraining: boolean): Response {
  const missing = [...clusters]
    .filter(([, cluster]) => !cluster.snapshot().some(({ role }) => role === "primary"))
    .map(([name]) => name);
  if (missing.length === 0 && !isDraining) {
    return toResponse(jsonAnswer(200, '{"status":"ready"}'));
  }
  const status = isDraining ? "stopping" : "no_primary";
  return toResponse(jsonAnswer(503, JSON.stringify({ status, databases: missing })));
}
