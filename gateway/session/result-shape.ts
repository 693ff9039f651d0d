// How the rows of one result are written: worked out from its description once, and remembered for the results that are described alike.
import { BoundedCache } from "#auth/bounded-cache.ts";
import { latin1 } from "#pool/wire/text.ts";
import { HEADER_BYTES, readInt32 } from "#pool/wire/message-types.ts";
import { type CellWriter, type RowFormat, cellWriter } from "./result-json.ts";

/** A column by the keys that node-postgres gives it. */
export interface Field {
  readonly name: string;
  readonly tableID: number;
  readonly columnID: number;
  readonly dataTypeID: number;
  readonly dataTypeSize: number;
  readonly dataTypeModifier: number;
  readonly format: "text";
}

/** A cell of the JSON row. */
export interface Member {
  /** What stands before the cell: a bracket or a comma, and the name where rows are objects. */
  readonly prefix: Uint8Array;
  /** Of the column. */
  readonly index: number;
  readonly write: CellWriter;
}

export interface ResultShape {
  readonly columnCount: number;
  /** What stands before the rows. */
  readonly head: Uint8Array;
  readonly members: readonly Member[];
  /** What stands behind the last cell of a row. */
  readonly rowEnd: Uint8Array;
}

/** The JSON around the rows of one statement's result. */
export interface ResultForm {
  /** Up to the array of rows, its bracket included. */
  readonly head: (fields: readonly Field[]) => string;
  /** From the array's end on. `rowCount` is null when the command tag has none. */
  readonly tail: (command: string, rowCount: number | null, format: RowFormat) => string;
}

/** Queries of an application; a miss costs some microseconds. */
const REMEMBERED_COUNT_MAX = 500;
/** Some forty columns. With what is made of it, about 20 KB, all entries keep at most 10 MB. */
const REMEMBERED_BYTES_MAX = 2_048;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The shapes of the results that one door writes. */
export class ResultShapes {
  readonly form: ResultForm;
  /** For statements without rows. */
  readonly empty: ResultShape;
  readonly #known = new BoundedCache<ResultShape>(REMEMBERED_COUNT_MAX);

  constructor(form: ResultForm) {
    this.form = form;
    this.empty = shapeOf([], { isArray: true, isRawText: true }, form);
  }

  /** Of a RowDescription, which lies in `chunk` from `start` to `end`. Undefined when it is malformed. */
  of(chunk: Uint8Array, start: number, end: number, format: RowFormat): ResultShape | undefined {
    const key =
      end - start <= REMEMBERED_BYTES_MAX
        ? `${format.isArray ? "a" : "o"}${format.isRawText ? "t" : "d"}${latin1(chunk, start, end)}`
        : undefined;
    const known = key === undefined ? undefined : this.#known.get(key);
    if (known !== undefined) return known;
    const fields = readRowDescription(chunk.subarray(start, end));
    if (fields === undefined) return undefined;
    const shape = shapeOf(fields, format, this.form);
    if (key !== undefined) this.#known.set(key, shape);
    return shape;
  }
}

function shapeOf(fields: readonly Field[], format: RowFormat, form: ResultForm): ResultShape {
  const { isArray, isRawText } = format;
  // Of equal names the first has the place and the last the value, as in any object.
  const lastByName = new Map(fields.map(({ name }, index) => [name, index]));
  const columns: readonly (readonly [key: string, index: number])[] = isArray
    ? fields.map((_, index) => ["", index])
    : [...lastByName].map(([name, index]) => [`${JSON.stringify(name)}:`, index]);
  const [open, close] = isArray ? "[]" : "{}";
  const members = columns.map(([key, index], place) => ({
    prefix: encoder.encode(`${place === 0 ? open : ","}${key}`),
    index,
    write: cellWriter(fields[index]?.dataTypeID ?? 0, isRawText),
  }));
  return {
    columnCount: fields.length,
    head: encoder.encode(form.head(fields)),
    members,
    rowEnd: encoder.encode(members.length === 0 ? `${open}${close}` : close),
  };
}

/** Table, column, type, size, modifier and format code. */
const FIELD_TAIL_BYTES = 18;

/** "Message Formats": RowDescription. Undefined when the frame is malformed. */
function readRowDescription(frame: Uint8Array): readonly Field[] | undefined {
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

export function readUint16(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset] ?? 0) << 8) | (bytes[offset + 1] ?? 0);
}

function readInt16(bytes: Uint8Array, offset: number): number {
  return (readUint16(bytes, offset) << 16) >> 16;
}
