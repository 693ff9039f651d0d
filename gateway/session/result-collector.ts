// Gathers the answers to statements sent by the extended protocol: their results as JSON up to a limit, command tags, the first error.
import { readErrorFields } from "#pool/wire/backend-messages.ts";
import type { FrameSink } from "#pool/wire/frame-splitter.ts";
import { latin1 } from "#pool/wire/text.ts";
import { Backend, HEADER_BYTES, Status, readInt32 } from "#pool/wire/message-types.ts";
import { JsonBytes } from "./json-bytes.ts";
import { NULL, type RowFormat } from "./result-json.ts";
import { type ResultShape, type ResultShapes, readUint16 } from "./result-shape.ts";
import { type ServerError, ownError, serverErrorOf } from "./server-error.ts";

export interface StatementResult {
  /** First word of the command tag; empty for an empty statement. */
  readonly command: string;
  /** The count at the end of the command tag; null when there is none. */
  readonly rowCount: number | null;
}

export interface CollectorEvents {
  /** ReadyForQuery, with its transaction status. */
  ready(status: number): void;
  /** So many more bytes are kept. */
  kept(bytes: number): void;
  /** The answers can't be taken any further; `error` says why. */
  refused(error: ServerError): void;
}

export interface CollectorOptions {
  readonly shapes: ResultShapes;
  /** One for each statement, in order; undefined for one whose result is not part of the answer. */
  readonly formats: readonly (RowFormat | undefined)[];
  /** What stands before the first result. */
  readonly opening: string;
  /** For all that is gathered, in bytes of JSON. */
  readonly bytesMax: number;
}

const COMMA = 0x2c;
const NULL_SIZE = -1;

export class ResultCollector implements FrameSink {
  readonly #options: CollectorOptions;
  readonly #events: CollectorEvents;
  readonly #results: StatementResult[] = [];
  /** Where the cells of the row being written begin and end, by turns. */
  readonly #cells: number[] = [];
  #body: JsonBytes;
  #shape: ResultShape | undefined;
  #hasResult = false;
  #hasRow = false;
  #error: ServerError | undefined;
  #large: { readonly bytes: Uint8Array; filled: number } | undefined;
  #isRefused = false;

  constructor(options: CollectorOptions, events: CollectorEvents) {
    this.#options = options;
    this.#events = events;
    this.#body = new JsonBytes((bytes) => events.kept(bytes));
    if (options.opening !== "") this.#body.text(options.opening);
  }

  /** One for each statement that was completed. */
  get results(): readonly StatementResult[] {
    return this.#results;
  }

  /** The opening, and the results that belong to the answer, parted by commas. Worth nothing after an error. */
  get body(): JsonBytes {
    return this.#body;
  }

  /** The first error. */
  get error(): ServerError | undefined {
    return this.#error;
  }

  frame(type: number, chunk: Uint8Array, start: number, end: number): void {
    if (this.#isRefused) return;
    switch (type) {
      case Backend.ROW_DESCRIPTION:
        this.#describe(chunk, start, end);
        break;
      case Backend.DATA_ROW:
        this.#row(chunk, start, end);
        break;
      case Backend.COMMAND_COMPLETE:
        // The tag's last byte is a NUL.
        this.#complete(latin1(chunk, start + HEADER_BYTES, end - 1));
        break;
      case Backend.EMPTY_QUERY_RESPONSE:
        this.#complete("");
        break;
      case Backend.ERROR_RESPONSE:
        this.#error ??= serverErrorOf(readErrorFields(chunk.subarray(start, end)));
        break;
      case Backend.READY_FOR_QUERY:
        this.#events.ready(chunk[start + HEADER_BYTES] ?? Status.IDLE);
        break;
      case Backend.COPY_IN_RESPONSE:
      case Backend.COPY_OUT_RESPONSE:
      case Backend.COPY_BOTH_RESPONSE:
        this.#refuse(copyError());
        break;
      default:
      // Acknowledgements, notices, notifications and parameter values: HTTP has no place for them.
    }
  }

  largeStart(_type: number, prefix: Uint8Array, sizeBytes: number): void {
    if (this.#isRefused) return;
    // The splitter has checked the size against its limit.
    const bytes = new Uint8Array(sizeBytes);
    bytes.set(prefix);
    this.#large = { bytes, filled: prefix.length };
  }

  largeBytes(bytes: Uint8Array, isLast: boolean): void {
    const large = this.#large;
    if (large === undefined) return;
    large.bytes.set(bytes, large.filled);
    large.filled += bytes.length;
    if (!isLast) return;
    this.#large = undefined;
    this.frame(large.bytes[0] ?? 0, large.bytes, 0, large.bytes.length);
  }

  /** A message beyond the splitter's limit, which is at least ours. */
  violation(_reason: string): void {
    this.#refuse(tooLarge(this.#options.bytesMax));
  }

  #describe(chunk: Uint8Array, start: number, end: number): void {
    const { shapes, formats } = this.#options;
    const format = formats[this.#results.length];
    const shape = format === undefined ? undefined : shapes.of(chunk, start, end, format);
    if (shape === undefined) this.#refuse(malformed());
    else this.#begin(shape);
  }

  #begin(shape: ResultShape): void {
    this.#shape = shape;
    if (this.#hasResult) this.#body.byte(COMMA);
    this.#hasResult = true;
    this.#hasRow = false;
    this.#body.raw(shape.head);
    this.#checkSize();
  }

  #row(chunk: Uint8Array, start: number, end: number): void {
    const shape = this.#shape;
    const body = this.#body;
    if (shape === undefined || !this.#readCells(chunk, start, end, shape.columnCount)) {
      this.#refuse(malformed());
      return;
    }
    if (this.#hasRow) body.byte(COMMA);
    this.#hasRow = true;
    for (const { prefix, index, write } of shape.members) {
      body.raw(prefix);
      const from = this.#cells[2 * index] ?? NULL_SIZE;
      if (from === NULL_SIZE) body.raw(NULL);
      else write(body, chunk, from, this.#cells[2 * index + 1] ?? from);
      // Within the row: escapes make up to six characters of one.
      this.#checkSize();
      if (this.#isRefused) return;
    }
    body.raw(shape.rowEnd);
    this.#checkSize();
  }

  /** "Message Formats": DataRow. False when counts and sizes do not add up to the frame. */
  #readCells(chunk: Uint8Array, start: number, end: number, count: number): boolean {
    let at = start + HEADER_BYTES + 2;
    if (at > end || readUint16(chunk, at - 2) !== count) return false;
    for (let index = 0; index < count; index++) {
      if (at + 4 > end) return false;
      const size = readInt32(chunk, at);
      at += 4;
      if (size < NULL_SIZE || at + size > end) return false;
      this.#cells[2 * index] = size === NULL_SIZE ? NULL_SIZE : at;
      if (size !== NULL_SIZE) at += size;
      this.#cells[2 * index + 1] = at;
    }
    return at === end;
  }

  #complete(tag: string): void {
    const { shapes, formats } = this.#options;
    const format = formats[this.#results.length];
    const firstBlank = tag.indexOf(" ");
    const command = firstBlank < 0 ? tag : tag.slice(0, firstBlank);
    const last = tag.slice(tag.lastIndexOf(" ") + 1);
    const rowCount = /^\d+$/.test(last) ? Number(last) : null;
    this.#results.push({ command, rowCount });
    if (format !== undefined) {
      if (this.#shape === undefined) this.#begin(shapes.empty);
      this.#body.text(shapes.form.tail(command, rowCount, format));
      this.#checkSize();
    }
    this.#shape = undefined;
  }

  #checkSize(): void {
    if (this.#body.size > this.#options.bytesMax) this.#refuse(tooLarge(this.#options.bytesMax));
  }

  #refuse(error: ServerError): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    this.#body = new JsonBytes();
    this.#large = undefined;
    this.#events.refused(error);
  }
}

export function copyError(): ServerError {
  return ownError("0A000", "COPY is not supported over HTTP", {
    hint: "Use the PostgreSQL protocol or its WebSocket.",
  });
}

function tooLarge(bytesMax: number): ServerError {
  return ownError("54000", `the answer is longer than max_response_body, ${bytesMax} bytes`, {
    detail: "The query was cancelled; if it had come to its end by then, its changes stand.",
    hint: "Ask for fewer rows, or read with a cursor over the PostgreSQL protocol.",
  });
}

function malformed(): ServerError {
  return ownError("08P01", "the server sent a malformed result", { severity: "FATAL" });
}
