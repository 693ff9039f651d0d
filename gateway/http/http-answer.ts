// Builds the answers of the HTTP door: JSON that no cache keeps.
import { httpStatusOf } from "../session/error-mapping.ts";
import type { QueryRun } from "../session/query-runner.ts";
import type { ServerError } from "../session/server-error.ts";

/** A client that comes back sooner finds what it has left. */
const RETRY_AFTER_SECONDS = "1";

const SERVICE_UNAVAILABLE = 503;

export function jsonAnswer(
  status: number,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  headers = new Headers(),
): Response {
  headers.set("Content-Type", "application/json");
  headers.set("Cache-Control", "no-store");
  return new Response(body, { status, headers });
}

export function errorAnswer(error: ServerError, status: number, headers = new Headers()): Response {
  if (httpStatusOf(error.code) === SERVICE_UNAVAILABLE) {
    headers.set("Retry-After", RETRY_AFTER_SECONDS);
  }
  return jsonAnswer(status, JSON.stringify(error), headers);
}

/** The headers that tell what served a request and what the next read must not be older than. */
export function runHeaders({ token, servedBy }: QueryRun): Headers {
  const headers = new Headers();
  if (token !== undefined) headers.set("Walgate-Token", token);
  if (servedBy !== undefined) headers.set("Walgate-Served-By", servedBy);
  return headers;
}
