// Gathers JSON text as UTF-8 bytes, in chunks that grow: what it keeps is what it has been given, and never a string for each piece. Pure.
import { isUtf8 } from "node:buffer";
import { copyRange } from "#pool/wire/message-types.ts";

/** One row of a few columns with its description fits. */
const FIRST_CHUNK_BYTES = 512;
/** Also what a slow reader is given at a time. */
export const CHUNK_BYTES_MAX = 65_536;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;
const FIRST_NOT_ASCII = 0x80;

/** ECMAScript, "QuoteJSONString": the short escapes; all other control characters are \u00XX. */
const SHORT_ESCAPES: ReadonlyMap<number, string> = new Map([
  [0x08, "\\b"],
  [0x09, "\\t"],
  [0x0a, "\\n"],
  [0x0c, "\\f"],
  [0x0d, "\\r"],
  [QUOTE, '\\"'],
  [BACKSLASH, "\\\\"],
]);

const ESCAPES: readonly string[] = Array.from({ length: BACKSLASH + 1 }, (_, byte) =>
  byte < FIRST_PRINTABLE || SHORT_ESCAPES.has(byte)
    ? (SHORT_ESCAPES.get(byte) ?? `\\u${byte.toString(16).padStart(4, "0")}`)
    : "",
);

const encoder = new TextEncoder();
/** A byte order mark inside an answer is a character like any other. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Called with the size of each chunk that is allocated. */
export type KeptBytes = (bytes: number) => void;

export class JsonBytes {
  readonly #kept: KeptBytes | undefined;
  readonly #full: Uint8Array<ArrayBuffer>[] = [];
  #fullBytes = 0;
  #chunk = EMPTY;
  #used = 0;

  constructor(kept?: KeptBytes) {
    this.#kept = kept;
  }

  /** In bytes. */
  get size(): number {
    return this.#fullBytes + this.#used;
  }

  byte(value: number): void {
    if (this.#used === this.#chunk.length) this.#grow();
    this.#chunk[this.#used++] = value;
  }

  /** Bytes that are JSON as they are. */
  raw(source: Uint8Array, start: number = 0, end: number = source.length): void {
    let from = start;
    while (from < end) {
      if (this.#used === this.#chunk.length) this.#grow();
      const to = Math.min(end, from + this.#chunk.length - this.#used);
      copyRange(this.#chunk, this.#used, source, from, to);
      this.#used += to - from;
      from = to;
    }
  }

  /** Text that is JSON as it is. */
  text(value: string): void {
    this.raw(encoder.encode(value));
  }

  /** JSON from a server that sends UTF-8, or nearly: a database in SQL_ASCII may hold any byte, and then U+FFFD stands for it. */
  json(source: Uint8Array, start: number, end: number): void {
    if (isSound(source, start, end)) this.raw(source, start, end);
    else this.text(decoder.decode(source.subarray(start, end)));
  }

  /** Text from a server, as `json` takes it, as a JSON string. */
  quoted(source: Uint8Array, start: number, end: number): void {
    if (!isSound(source, start, end)) {
      this.text(JSON.stringify(decoder.decode(source.subarray(start, end))));
      return;
    }
    this.byte(QUOTE);
    let from = start;
    for (let at = start; at < end; at++) {
      const escape = ESCAPES[source[at] ?? 0];
      if (escape === undefined || escape === "") continue;
      this.raw(source, from, at);
      this.text(escape);
      from = at + 1;
    }
    this.raw(source, from, end);
    this.byte(QUOTE);
  }

  /** What was gathered, as one piece. Nothing may be added afterwards. */
  whole(): Uint8Array<ArrayBuffer> {
    // A copy of a few hundred bytes is cheaper than a view.
    if (this.#full.length === 0) return this.#chunk.slice(0, this.#used);
    const whole = new Uint8Array(this.size);
    let at = 0;
    for (const chunk of this.chunks()) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }

  /** What was gathered, in order, in views of at most CHUNK_BYTES_MAX each. Nothing may be added afterwards. */
  chunks(): readonly Uint8Array<ArrayBuffer>[] {
    return [...this.#full, this.#chunk.subarray(0, this.#used)];
  }

  #grow(): void {
    if (this.#chunk.length > 0) this.#full.push(this.#chunk);
    this.#fullBytes += this.#chunk.length;
    // As much again as there is: at most half of what is kept is empty.
    const size = Math.min(Math.max(this.#fullBytes, FIRST_CHUNK_BYTES), CHUNK_BYTES_MAX);
    this.#chunk = new Uint8Array(size);
    this.#used = 0;
    this.#kept?.(size);
  }
}

const EMPTY = new Uint8Array(0);

/** Text in ASCII, which nearly all is, costs no view. */
function isSound(source: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if ((source[at] ?? 0) >= FIRST_NOT_ASCII) return isUtf8(source.subarray(at, end));
  }
  return true;
}
