// Which pages in a browser may call the HTTP door and read its answers (the Fetch standard, "HTTP extensions").
import type { AnswerHeaders } from "./http-answer.ts";

/** Every header that a client of ours or the serverless driver sends. */
const REQUEST_HEADERS = [
  "Authorization",
  "Content-Type",
  "Neon-Connection-String",
  "Neon-Raw-Text-Output",
  "Neon-Array-Mode",
  "Neon-Pool-Opt-In",
  "Neon-Batch-Read-Only",
  "Neon-Batch-Isolation-Level",
  "Neon-Batch-Deferrable",
  "Walgate-Token",
].join(", ");

const EXPOSED_HEADERS = "Neon-Request-Id, Walgate-Token, Walgate-Served-By, Retry-After";

/** A day; browsers cap it themselves. */
const PREFLIGHT_SECONDS = "86400";

export class Cors {
  readonly #origins: ReadonlySet<string>;

  /** Origins as configured; "*" allows all. */
  constructor(allowedOrigins: readonly string[]) {
    this.#origins = new Set(allowedOrigins);
  }

  /** Adds what any answer to `request` carries, errors included. */
  apply(request: Headers, answer: AnswerHeaders): void {
    if (this.#origins.has("*")) {
      answer["Access-Control-Allow-Origin"] = "*";
    } else {
      if (this.#origins.size === 0) return;
      // A cache must not give one origin's answer to another.
      answer["Vary"] = "Origin";
      const origin = request.get("origin");
      if (origin === null || !this.#origins.has(origin)) return;
      answer["Access-Control-Allow-Origin"] = origin;
    }
    answer["Access-Control-Expose-Headers"] = EXPOSED_HEADERS;
  }

  preflight(request: Headers): Response {
    const headers: AnswerHeaders = { Allow: "OPTIONS, POST" };
    this.apply(request, headers);
    if (headers["Access-Control-Allow-Origin"] !== undefined) {
      headers["Access-Control-Allow-Methods"] = "POST, OPTIONS";
      headers["Access-Control-Allow-Headers"] = REQUEST_HEADERS;
      headers["Access-Control-Max-Age"] = PREFLIGHT_SECONDS;
    }
    return new Response(null, { status: 200, headers });
  }
}
