// Reads a request's body as JSON: bounded in size and time, with numbers as they were written, and with errors that say nothing of its content.
import type { Clock } from "#pool/time/clock.ts";
import { type ServerError, ownError } from "../session/server-error.ts";

export type BodyResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ServerError };

export interface BodyLimits {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** The body's text. The content type does not matter: the serverless driver says text/plain. */
export async function readBody(request: Request, limits: BodyLimits): Promise<BodyResult<string>> {
  const { bytesMax, timeoutMs, clock } = limits;
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) return tooLong(bytesMax);
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = clock.schedule(timeoutMs, () => resolve("late"));
  try {
    const bytes = await Promise.race([readBytes(request, bytesMax), late]);
    if (bytes === "late") {
      return failure("08P01", "the request body did not arrive within client_login_timeout");
    }
    if (bytes === undefined) return tooLong(bytesMax);
    return { ok: true, value: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    if (error instanceof TypeError) return failure("22021", "the request body is not UTF-8");
    // The client has gone away in the middle of it.
    if (error instanceof Error) return failure("08P01", "the request body is not complete");
    throw error;
  } finally {
    timer.cancel();
  }
}

/** Undefined when it is longer than that: without a Content-Length only reading tells. */
async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array | undefined> {
  if (request.headers.has("content-length")) return request.bytes();
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.length;
    if (size > bytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** An object with the keys of the body, its values read by `read`. Numbers in it are raw JSON when `read` asks for exact ones. */
export function parseBody<T>(
  text: string,
  read: (body: Readonly<Record<string, unknown>>) => BodyResult<T>,
): BodyResult<T> {
  try {
    const body = parseExact(text);
    if (isRecord(body)) return read(body);
    return failure("08P01", "the request body is not a JSON object");
  } catch (error) {
    if (error instanceof SyntaxError) return failure("08P01", "the request body is not JSON");
    if (error instanceof RangeError) {
      return failure("54001", "the request body is nested too deeply");
    }
    throw error;
  }
}

/** A number outside of quotes, roughly: a digit that follows what may come before a value. Only then is the slow way needed. */
const MAY_HOLD_NUMBER = /[:[,]\s*-?\d/;

/** Numbers keep their source text: a JavaScript number would round 9007199254740993. */
function parseExact(text: string): unknown {
  if (!MAY_HOLD_NUMBER.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined ? JSON.rawJSON(source) : value,
  );
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function failure(
  code: string,
  message: string,
): { readonly ok: false; readonly error: ServerError } {
  return { ok: false, error: ownError(code, message) };
}

function tooLong(bytesMax: number): { readonly ok: false; readonly error: ServerError } {
  return failure("54000", `the request body is longer than max_request_body, ${bytesMax} bytes`);
}
