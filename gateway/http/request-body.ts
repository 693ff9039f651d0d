// Reads a request's body as JSON: bounded in size and time, with numbers as they were written, and with errors that say nothing of its content.
import type { Clock } from "#pool/time/clock.ts";
import { SharedTimer } from "../session/shared-timer.ts";
import { type ServerError, ownError } from "../session/server-error.ts";

export type BodyResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ServerError };

export interface BodyLimits {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Without `stream` it keeps nothing from one text to the next. */
const decoder = new TextDecoder("utf-8", { fatal: true });

export class BodyReader {
  readonly #limits: BodyLimits;
  readonly #late: SharedTimer;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
    this.#late = new SharedTimer(limits.clock, limits.timeoutMs);
  }

  /** The body's text. The content type does not matter: the serverless driver says text/plain. */
  async read(request: Request): Promise<BodyResult<string>> {
    const { bytesMax } = this.#limits;
    const announced = request.headers.get("content-length");
    if (Number(announced) > bytesMax) return tooLong(bytesMax);
    try {
      const reading = announced === null ? readChunks(request, bytesMax) : request.bytes();
      const bytes = await this.#inTime(reading);
      if (bytes === "late") {
        return failure("08P01", "the request body did not arrive within client_login_timeout");
      }
      if (bytes === undefined) return tooLong(bytesMax);
      return { ok: true, value: decoder.decode(bytes) };
    } catch (error) {
      if (error instanceof TypeError) return failure("22021", "the request body is not UTF-8");
      // The client has gone away in the middle of it.
      if (error instanceof Error) return failure("08P01", "the request body is not complete");
      throw error;
    }
  }

  #inTime<T>(work: Promise<T>): Promise<T | "late"> {
    return new Promise((resolve, reject) => {
      const wait = this.#late.schedule(() => resolve("late"));
      work.then(
        (value) => {
          this.#late.cancel(wait);
          resolve(value);
        },
        (error: unknown) => {
          this.#late.cancel(wait);
          reject(error);
        },
      );
    });
  }
}

/** Undefined when it is longer than that: without a Content-Length only reading tells. */
async function readChunks(request: Request, bytesMax: number): Promise<Uint8Array | undefined> {
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

/** An object with the keys of the body, its values read by `read`. Numbers that JavaScript would round are raw JSON. */
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

/**
 * A number that JavaScript may write otherwise than it came: one with an exponent, with more digits than are exact (15), with a zero
 * at the end of its fraction, so small that an exponent would be written, or a zero with a sign. Roughly: what looks like one inside of
 * quotes only makes reading slower.
 */
const MAY_HOLD_INEXACT_NUMBER =
  /[:[,]\s*-?(?:\d{16}|[\d.]{17}|\d+[eE]|\d+\.(?:\d*[eE]|\d*0(?!\d)|00000))|[:[,]\s*-0(?!\.)/;

/** Numbers keep their source text: a JavaScript number would round 9007199254740993. */
function parseExact(text: string): unknown {
  if (!MAY_HOLD_INEXACT_NUMBER.test(text)) return JSON.parse(text);
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
