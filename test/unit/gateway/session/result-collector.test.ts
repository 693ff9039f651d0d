import { describe, expect, test } from "bun:test";
import { ResultCollector } from "#gateway/session/result-collector.ts";
import type { RowFormat } from "#gateway/session/result-json.ts";
import { ResultShapes } from "#gateway/session/result-shape.ts";
import type { ServerError } from "#gateway/session/server-error.ts";
import {
  encodeErrorResponse,
  encodeFrame,
  encodeReadyForQuery,
} from "#pool/wire/backend-messages.ts";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import { Backend, Status, concatBytes, writeInt32 } from "#pool/wire/message-types.ts";

const encoder = new TextEncoder();
const RAW = { isArray: true, isRawText: true };

function int16(value: number): Uint8Array {
  return new Uint8Array([value >> 8, value & 0xff]);
}

function int32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeInt32(bytes, 0, value);
  return bytes;
}

function rowDescription(...names: string[]): Uint8Array {
  const fields = names.flatMap((name) => [
    encoder.encode(`${name}\0`),
    int32(0x8000_0001),
    int16(2),
    int32(25),
    int16(-1),
    int32(-1),
    int16(0),
  ]);
  return encodeFrame(Backend.ROW_DESCRIPTION, concatBytes([int16(names.length), ...fields]));
}

function dataRow(...cells: (string | null)[]): Uint8Array {
  const parts = cells.flatMap((cell) => {
    if (cell === null) return [int32(-1)];
    const bytes = encoder.encode(cell);
    return [int32(bytes.length), bytes];
  });
  return encodeFrame(Backend.DATA_ROW, concatBytes([int16(cells.length), ...parts]));
}

function complete(tag: string): Uint8Array {
  return encodeFrame(Backend.COMMAND_COMPLETE, encoder.encode(`${tag}\0`));
}

const EMPTY_QUERY = encodeFrame(Backend.EMPTY_QUERY_RESPONSE, new Uint8Array());
const READY = encodeReadyForQuery(Status.IDLE);

/** As short as a form can be, so that sizes can be counted. */
const SHAPES = new ResultShapes({
  head: (fields) => `{${fields.map(({ name }) => name).join("")}[`,
  tail: (command, rowCount) => `]${command}${rowCount}}`,
});

interface CollectOptions {
  readonly bytesMax?: number;
  readonly cut?: number;
  readonly formats?: readonly (RowFormat | undefined)[];
  readonly opening?: string;
}

function collect(bytes: Uint8Array, options: CollectOptions) {
  const { bytesMax = 10_000, cut = bytes.length, formats = [RAW], opening = "" } = options;
  const ready: number[] = [];
  const refused: ServerError[] = [];
  let kept = 0;
  const collector = new ResultCollector(
    { shapes: SHAPES, formats, opening, bytesMax },
    {
      ready: (status) => ready.push(status),
      kept: (size) => {
        kept += size;
      },
      refused: (error) => refused.push(error),
    },
  );
  const splitter = new FrameSplitter(collector, 1_000_000);
  for (let at = 0; at < bytes.length; at += cut) splitter.push(bytes.subarray(at, at + cut));
  const body = new TextDecoder().decode(collector.body.whole());
  return { body, results: collector.results, error: collector.error, ready, refused, kept };
}

describe("the collector", () => {
  test("gathers rows, fields and tags of several statements, however the bytes are cut", () => {
    const long = "x".repeat(70_000);
    const bytes = concatBytes([
      rowDescription("a", "b"),
      dataRow("1", null),
      dataRow(long, "é"),
      complete("SELECT 2"),
      complete("INSERT 0 3"),
      complete("CREATE TABLE"),
      EMPTY_QUERY,
      READY,
    ]);

    for (const cut of [bytes.length, 1_000, 17]) {
      const formats = [RAW, RAW, RAW, RAW];
      expect(collect(bytes, { cut, formats, bytesMax: 100_000, opening: "(" })).toEqual({
        body: `({ab[["1",null],["${long}","é"]]SELECT2},{[]INSERT3},{[]CREATEnull},{[]null}`,
        results: [
          { command: "SELECT", rowCount: 2 },
          { command: "INSERT", rowCount: 3 },
          { command: "CREATE", rowCount: null },
          { command: "", rowCount: null },
        ],
        error: undefined,
        ready: [Status.IDLE],
        refused: [],
        // Chunks of 512 bytes and as much as was there before, until they hold all of it; the last is of the largest size.
        kept: 512 * 2 ** 7 + 65_536,
      });
    }
  });

  test("leaves out results that are no part of the answer", () => {
    const bytes = concatBytes([
      complete("START TRANSACTION"),
      rowDescription("a"),
      dataRow("1"),
      complete("SELECT 1"),
      complete("COMMIT"),
      READY,
    ]);

    expect(collect(bytes, { formats: [undefined, RAW, undefined] })).toMatchObject({
      body: '{a[["1"]]SELECT1}',
      results: [
        { command: "START", rowCount: null },
        { command: "SELECT", rowCount: 1 },
        { command: "COMMIT", rowCount: null },
      ],
      refused: [],
    });
  });

  test("writes objects, in which the last of two equal names wins, and rows without columns", () => {
    const objects = { isArray: false, isRawText: true };
    const bytes = concatBytes([
      rowDescription("a", "__proto__", "a"),
      dataRow("1", null, '"2"'),
      dataRow(null, "p", null),
      complete("SELECT 2"),
      rowDescription(),
      dataRow(),
      complete("SELECT 1"),
      rowDescription(),
      dataRow(),
      complete("SELECT 1"),
      READY,
    ]);

    expect(collect(bytes, { formats: [objects, objects, RAW] }).body).toBe(
      '{a__proto__a[{"a":"\\"2\\"","__proto__":null},{"a":null,"__proto__":"p"}]SELECT2},' +
        "{[{}]SELECT1},{[[]]SELECT1}",
    );
  });

  test("keeps the first error", () => {
    const error = (message: string): Uint8Array =>
      encodeErrorResponse({ severity: "ERROR", sqlState: "22012", message });

    const {
      error: kept,
      results,
      ready,
    } = collect(
      concatBytes([error("first"), error("second"), encodeReadyForQuery(Status.FAILED)]),
      {},
    );

    expect({ kept, results, ready }).toMatchObject({
      kept: { message: "first", code: "22012", severity: "ERROR", routine: "walgate" },
      results: [],
      ready: [Status.FAILED],
    });
  });

  test("takes an answer up to the limit and refuses one byte more with 54000, once", () => {
    const bytes = concatBytes([rowDescription("a"), dataRow("xy"), complete("SELECT 1"), READY]);
    const body = '{a[["xy"]]SELECT1}';

    expect(collect(bytes, { bytesMax: body.length })).toMatchObject({
      body,
      refused: [],
      ready: [Status.IDLE],
    });
    const over = collect(concatBytes([bytes, bytes]), {
      bytesMax: body.length - 1,
      formats: [RAW, RAW],
    });
    expect(over.refused.map(({ code }) => code)).toEqual(["54000"]);
    expect({ ready: over.ready, body: over.body }).toEqual({ ready: [], body: "" });
  });

  test("keeps tiny rows as bytes, at most twice as many as it counts", () => {
    const rows = Array.from({ length: 20_000 }, () => dataRow("1"));
    const bytes = concatBytes([rowDescription("a"), ...rows, complete("SELECT 20000"), READY]);

    const { body, kept, refused } = collect(bytes, { bytesMax: 200_000 });

    expect(refused).toEqual([]);
    expect(body.length).toBeGreaterThan(20_000 * 6);
    expect(kept).toBeLessThan(2 * body.length);
  });

  test("refuses a message beyond the splitter's limit with 54000", () => {
    const { refused } = collect(dataRow("x".repeat(1_000_001)), { bytesMax: 500 });

    expect(refused).toMatchObject([
      { code: "54000", message: "the answer is longer than max_response_body, 500 bytes" },
    ]);
  });

  test("refuses COPY with 0A000 and a hint", () => {
    for (const type of [Backend.COPY_IN_RESPONSE, Backend.COPY_OUT_RESPONSE]) {
      const { refused } = collect(encodeFrame(type, new Uint8Array(3)), {});

      expect(refused).toMatchObject([
        { code: "0A000", hint: "Use the PostgreSQL protocol or its WebSocket." },
      ]);
    }
  });

  test("refuses a row that does not fit its description with 08P01", () => {
    const cases = [
      concatBytes([rowDescription("a"), dataRow("1", "2")]),
      dataRow("1"),
      encodeFrame(Backend.ROW_DESCRIPTION, int16(1)),
      // More results than statements.
      concatBytes([complete("SELECT 0"), rowDescription("a")]),
      // A row that ends early, and one with more bytes than cells.
      concatBytes([rowDescription("a"), encodeFrame(Backend.DATA_ROW, int16(1))]),
      concatBytes([
        rowDescription("a"),
        encodeFrame(Backend.DATA_ROW, concatBytes([int16(1), int32(5), int16(0)])),
      ]),
      concatBytes([
        rowDescription("a"),
        encodeFrame(Backend.DATA_ROW, concatBytes([int16(1), int32(-2)])),
      ]),
      concatBytes([
        rowDescription("a"),
        encodeFrame(Backend.DATA_ROW, concatBytes([int16(1), int32(-1), int16(0)])),
      ]),
    ];
    for (const bytes of cases) {
      expect(collect(bytes, {}).refused).toMatchObject([{ code: "08P01" }]);
    }
  });
});
