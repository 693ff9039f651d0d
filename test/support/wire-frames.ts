// Protocol messages for tests: builders for both directions, and a reader that turns bytes into lines a test can compare.
import { encodeFrame, readErrorFields, readCommandTag } from "#pool/wire/backend-messages.ts";
import { Backend, HEADER_BYTES, concatBytes, readInt32 } from "#pool/wire/message-types.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Strings get their NUL, numbers become 16-bit integers. */
function body(...fields: readonly (string | number | Uint8Array)[]): Uint8Array {
  return concatBytes(
    fields.map((field) => {
      if (typeof field === "string") return encoder.encode(`${field}\0`);
      if (typeof field === "number") return int16(field);
      return field;
    }),
  );
}

export function int16(value: number): Uint8Array {
  return new Uint8Array([value >> 8, value]);
}

export function int32(value: number): Uint8Array {
  return new Uint8Array([value >>> 24, value >>> 16, value >>> 8, value]);
}

function message(type: string, ...fields: readonly (string | number | Uint8Array)[]): Uint8Array {
  return encodeFrame(type.charCodeAt(0), body(...fields));
}

/** Length, then UTF-8; null is -1. */
function cell(value: string | null): Uint8Array {
  if (value === null) return int32(-1);
  const bytes = encoder.encode(value);
  return concatBytes([int32(bytes.length), bytes]);
}

/** What clients send. */
export const client = {
  query: (text: string) => message("Q", text),
  parse: (name: string, text: string, types: readonly number[] = []) =>
    message("P", name, text, types.length, ...types.map(int32)),
  bind: (portal: string, statement: string, values: readonly (string | null)[] = []) =>
    message("B", portal, statement, 0, values.length, ...values.map(cell), 0),
  describeStatement: (name: string) => message("D", encoder.encode("S"), name),
  describePortal: (name: string) => message("D", encoder.encode("P"), name),
  execute: (portal: string, rowsMax = 0) => message("E", portal, int32(rowsMax)),
  closeStatement: (name: string) => message("C", encoder.encode("S"), name),
  closePortal: (name: string) => message("C", encoder.encode("P"), name),
  sync: () => message("S"),
  flush: () => message("H"),
  copyData: (text: string) => message("d", encoder.encode(text)),
  copyDone: () => message("c"),
  copyFail: (reason: string) => message("f", reason),
  terminate: () => message("X"),
  /** Parse, Bind, Describe, Execute, Sync of the unnamed statement, as most drivers send it. */
  unnamed: (text: string) =>
    concatBytes([
      client.parse("", text),
      client.bind("", ""),
      client.describePortal(""),
      client.execute(""),
      client.sync(),
    ]),
  /** Bind, Execute, Sync of a statement prepared before. */
  run: (statement: string) =>
    concatBytes([client.bind("", statement), client.execute(""), client.sync()]),
} as const;

/** What servers answer. */
export const server = {
  parseComplete: () => message("1"),
  bindComplete: () => message("2"),
  closeComplete: () => message("3"),
  noData: () => message("n"),
  emptyQuery: () => message("I"),
  portalSuspended: () => message("s"),
  parameterDescription: () => message("t", 0),
  rowDescription: (...names: readonly string[]) =>
    message(
      "T",
      names.length,
      ...names.map((name) =>
        concatBytes([body(name), int32(0), int16(0), int32(25), int16(-1), int32(-1), int16(0)]),
      ),
    ),
  dataRow: (...values: readonly (string | null)[]) =>
    message("D", values.length, ...values.map(cell)),
  commandComplete: (tag: string) => message("C", tag),
  ready: (status: "I" | "T" | "E") => message("Z", encoder.encode(status)),
  error: (sqlState: string, text: string, severity = "ERROR", routine?: string) =>
    message(
      "E",
      `S${severity}`,
      `V${severity}`,
      `C${sqlState}`,
      `M${text}`,
      ...(routine === undefined ? [] : [`R${routine}`]),
      new Uint8Array(1),
    ),
  notice: (text: string) =>
    message("N", "SNOTICE", "VNOTICE", "C00000", `M${text}`, new Uint8Array(1)),
  notification: (channel: string, payload: string) => message("A", int32(1), channel, payload),
  parameterStatus: (name: string, value: string) => message("S", name, value),
  copyIn: () => message("G", new Uint8Array([0]), 0),
  copyOut: () => message("H", new Uint8Array([0]), 0),
  copyData: (text: string) => message("d", encoder.encode(text)),
  copyDone: () => message("c"),
} as const;

export interface Frame {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** Whole frames; what is left at the end, or is none, comes as a frame of type "partial". */
export function splitFrames(bytes: Uint8Array): Frame[] {
  const frames: Frame[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const size = bytes.length - offset < HEADER_BYTES ? Infinity : readInt32(bytes, offset + 1) + 1;
    if (size < HEADER_BYTES || offset + size > bytes.length) {
      frames.push({ type: "partial", bytes: bytes.slice(offset) });
      break;
    }
    frames.push({
      type: String.fromCharCode(bytes[offset] ?? 0),
      bytes: bytes.slice(offset, offset + size),
    });
    offset += size;
  }
  return frames;
}

/** Server messages one by one: the type's letter, and what a reader of a test wants to see of it. */
export function describeReplies(bytes: Uint8Array): string[] {
  return splitFrames(bytes).map(describeReply);
}

function describeReply({ type, bytes }: Frame): string {
  if (type === "partial") return type;
  switch (bytes[0] ?? 0) {
    case Backend.ERROR_RESPONSE: {
      const fields = readErrorFields(bytes);
      const severity = fields.get("V") === "ERROR" ? "" : `${fields.get("V")} `;
      return `${type} ${severity}${fields.get("C")} ${fields.get("M")}`;
    }
    case Backend.COMMAND_COMPLETE:
      return `${type} ${readCommandTag(bytes)}`;
    case Backend.READY_FOR_QUERY:
    case Backend.COPY_DATA:
      return `${type} ${decoder.decode(bytes.subarray(HEADER_BYTES))}`;
    case Backend.DATA_ROW:
      return `${type} ${readCells(bytes).join(",")}`;
    case Backend.NOTICE_RESPONSE:
      return `${type} ${readErrorFields(bytes).get("M")}`;
    case Backend.PARAMETER_STATUS:
      return `${type} ${decoder.decode(bytes.subarray(HEADER_BYTES, -1)).replace("\0", "=")}`;
    default:
      return type;
  }
}

function readCells(frame: Uint8Array): (string | null)[] {
  const cells: (string | null)[] = [];
  let offset = HEADER_BYTES + 2;
  while (offset < frame.length) {
    const size = readInt32(frame, offset);
    offset += 4;
    cells.push(size < 0 ? null : decoder.decode(frame.subarray(offset, offset + size)));
    offset += Math.max(0, size);
  }
  return cells;
}

/** Client messages one by one: the type's letter and the strings in it, as a server's log would show them. */
export function describeRequests(bytes: Uint8Array): string[] {
  return splitFrames(bytes).map(({ type, bytes: frame }) => {
    const text = decoder.decode(frame.subarray(HEADER_BYTES));
    switch (type) {
      case "Q":
      case "f":
        return `${type} ${text.slice(0, -1)}`;
      case "P":
      case "B": {
        const [first = "", second = ""] = text.split("\0");
        return `${type} ${first || '""'} ${second || '""'}`;
      }
      case "D":
      case "C":
        return `${type} ${text.slice(0, 1)} ${text.slice(1, -1) || '""'}`;
      case "E":
        return `${type} ${text.split("\0")[0] || '""'}`;
      case "d":
        return `${type} ${text}`;
      default:
        return type;
    }
  });
}
