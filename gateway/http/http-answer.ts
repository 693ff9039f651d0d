// Builds the answers of the HTTP door: JSON that no cache keeps.
import { httpStatusOf } from "../session/error-mapping.ts";
import type { QueryRun } from "../session/query-runner.ts";
import type { ServerError } from "../session/server-error.ts";

/** A client that comes back sooner finds what it has left. */
const RETRY_AFTER_SECONDS = "1";

const SERVICE_UNAVAILABLE = 503;

/** By name. A plain object until the answer is made: reading a response's headers back would cost a copy of all of them. */
export type AnswerHeaders = Record<string, string>;

/** An answer that is still to get the headers that all answers carry. */
export interface Answer {
  readonly status: number;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly headers: AnswerHeaders;
}

/** Takes `headers` over. */
export function jsonAnswer(
  status: number,
  body: Answer["body"],
  headers: AnswerHeaders = {},
): Answer {
  headers["Content-Type"] = "application/json";
  headers["Cache-Control"] = "no-store";
  return { status, body, headers };
}

/** Takes `headers` over. */
export function errorAnswer(
  error: ServerError,
  status: number,
  headers: AnswerHeaders = {},
): Answer {
  if (httpStatusOf(error.code) === SERVICE_UNAVAILABLE) {
    headers["Retry-After"] = RETRY_AFTER_SECONDS;
  }
  return jsonAnswer(status, JSON.stringify(error), headers);
}

export function toResponse({ status, body, headers }: Answer): Response {
  return new Response(body, { status, headers });
}

/** The headers that tell what served a request and what the next read must not be older than. */
export function runHeaders({ token, servedBy }: QueryRun): AnswerHeaders {
  const headers: AnswerHeaders = {};
  if (token !== undefined) headers["Walgate-Token"] = token;
  if (servedBy !== undefined) headers["Walgate-Served-By"] = servedBy;
  return headers;
}
