// Gathers the answers to statements sent by the extended protocol: rows as JSON text up to a limit, command tags, the first error.
import { readTextRow } from "#pool/backend/data-row.ts";
import { readCommandTag, readErrorFields } from "#pool/wire/backend-messages.ts";
import type { FrameSink } from "#pool/wire/frame-splitter.ts";
import { Backend, HEADER_BYTES, Status, readInt32 } from "#pool/wire/message-types.ts";
import { type Field, type RowEncoder, type RowFormat, rowEncoder } from "./result-json.ts";
import { type ServerError, ownError, serverErrorOf } from "./server-error.ts";

export interface StatementResult {
  readonly fields: readonly Field[];
  /** JSON texts, as the statement's row format says. */
  readonly rows: readonly string[];
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

/** JSON of a Field around its name: seven keys, and numbers of at most 11 characters. */
const FIELD_BYTES = 180;

const decoder = new TextDecoder();

export class ResultCollector implements FrameSink {
  readonly #formats: readonly RowFormat[];
  readonly #bytesMax: number;
  readonly #events: CollectorEvents;
  readonly #results: StatementResult[] = [];
  #fields: readonly Field[] = [];
  #encoder: RowEncoder | undefined;
  #rows: string[] = [];
  #bytes = 0;
  #error: ServerError | undefined;
  #large: { readonly bytes: Uint8Array; filled: number } | undefined;
  #isRefused = false;

  /** One format for each statement, in order. `bytesMax` is for the JSON of all of them together. */
  constructor(formats: readonly RowFormat[], bytesMax: number, events: CollectorEvents) {
    this.#formats = formats;
    this.#bytesMax = bytesMax;
    this.#events = events;
  }

  /** One for each statement that was completed. */
  get results(): readonly StatementResult[] {
    return this.#results;
  }

  /** The first error. */
  get error(): ServerError | undefined {
    return this.#error;
  }

  frame(type: number, chunk: Uint8Array, start: number, end: number): void {
    this.#frame(type, chunk.subarray(start, end));
  }

  #frame(type: number, bytes: Uint8Array): void {
    if (this.#isRefused) return;
    switch (type) {
      case Backend.ROW_DESCRIPTION:
        this.#describe(bytes);
        break;
      case Backend.DATA_ROW:
        this.#row(bytes);
        break;
      case Backend.COMMAND_COMPLETE:
        this.#complete(readCommandTag(bytes));
        break;
      case Backend.EMPTY_QUERY_RESPONSE:
        this.#complete("");
        break;
      case Backend.ERROR_RESPONSE:
        this.#error ??= serverErrorOf(readErrorFields(bytes));
        break;
      case Backend.READY_FOR_QUERY:
        this.#events.ready(bytes[HEADER_BYTES] ?? Status.IDLE);
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
    this.#frame(large.bytes[0] ?? 0, large.bytes);
  }

  /** A message beyond the splitter's limit, which is at least ours. */
  violation(_reason: string): void {
    this.#refuse(tooLarge(this.#bytesMax));
  }

  #describe(bytes: Uint8Array): void {
    const fields = readRowDescription(bytes);
    const format = this.#formats[this.#results.length];
    if (fields === undefined || format === undefined) {
      this.#refuse(malformed());
      return;
    }
    this.#fields = fields;
    this.#encoder = rowEncoder(fields, format);
    for (const { name } of fields) this.#count(FIELD_BYTES + name.length);
  }

  #row(bytes: Uint8Array): void {
    const cells = readTextRow(bytes);
    if (cells === undefined || cells.length !== this.#fields.length || !this.#encoder) {
      this.#refuse(malformed());
      return;
    }
    const row = this.#encoder(cells);
    this.#rows.push(row);
    // And its comma.
    this.#count(Buffer.byteLength(row) + 1);
  }

  #complete(tag: string): void {
    const words = tag.split(" ");
    const last = words.at(-1) ?? "";
    this.#results.push({
      fields: this.#fields,
      rows: this.#rows,
      command: words[0] ?? "",
      rowCount: /^\d+$/.test(last) ? Number(last) : null,
    });
    this.#fields = [];
    this.#encoder = undefined;
    this.#rows = [];
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#events.kept(bytes);
    if (this.#bytes > this.#bytesMax) this.#refuse(tooLarge(this.#bytesMax));
  }

  #refuse(error: ServerError): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    this.#rows = [];
    this.#large = undefined;
    this.#events.refused(error);
  }
}

/** "Message Formats": RowDescription. Undefined when the frame is malformed. */
export function readRowDescription(frame: Uint8Array): readonly Field[] | undefined {
  if (frame.length < HEADER_BYTES + 2) return undefined;
  const count = readUint16(frame, HEADER_BYTES);
  const fields: Field[] = [];
  let offset = HEADER_BYTES + 2;
  for (let index = 0; index < count; index++) {
    const nameEnd = frame.indexOf(0, offset);
    if (nameEnd < 0 || nameEnd + 1 + FIELD_TAIL_BYTES > frame.length) return undefined;
    const tail = nameEnd + 1;
    fields.push({
      name: decoder.decode(frame.subarray(offset, nameEnd)),
      tableID: readInt32(frame, tail) >>> 0,
      columnID: readUint16(frame, tail + 4),
      dataTypeID: readInt32(frame, tail + 6) >>> 0,
      dataTypeSize: readInt16(frame, tail + 10),
      dataTypeModifier: readInt32(frame, tail + 12),
      format: "text",
    });
    offset = tail + FIELD_TAIL_BYTES;
  }
  return offset === frame.length ? fields : undefined;
}

/** Table, column, type, size, modifier and format code. */
const FIELD_TAIL_BYTES = 18;

function readUint16(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset] ?? 0) << 8) | (bytes[offset + 1] ?? 0);
}

function readInt16(bytes: Uint8Array, offset: number): number {
  return (readUint16(bytes, offset) << 16) >> 16;
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
