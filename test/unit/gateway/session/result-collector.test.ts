import { describe, expect, test } from "bun:test";
import { ResultCollector } from "#gateway/session/result-collector.ts";
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

function collect(bytes: Uint8Array, options: { bytesMax?: number; cut?: number; count?: number }) {
  const { bytesMax = 10_000, cut = bytes.length, count = 1 } = options;
  const ready: number[] = [];
  const refused: ServerError[] = [];
  let kept = 0;
  const collector = new ResultCollector(
    Array.from({ length: count }, () => RAW),
    bytesMax,
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
  return { results: collector.results, error: collector.error, ready, refused, kept };
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
      expect(collect(bytes, { cut, count: 4, bytesMax: 100_000 })).toEqual({
        results: [
          {
            fields: ["a", "b"].map((name) => ({
              name,
              tableID: 0x8000_0001,
              columnID: 2,
              dataTypeID: 25,
              dataTypeSize: -1,
              dataTypeModifier: -1,
              format: "text",
            })),
            rows: ['["1",null]', `["${long}","é"]`],
            command: "SELECT",
            rowCount: 2,
          },
          { fields: [], rows: [], command: "INSERT", rowCount: 3 },
          { fields: [], rows: [], command: "CREATE", rowCount: null },
          { fields: [], rows: [], command: "", rowCount: null },
        ],
        error: undefined,
        ready: [Status.IDLE],
        refused: [],
        // Two fields and their names; the rows and their commas.
        kept: 2 * 181 + 11 + (70_000 + 9) + 1,
      });
    }
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

  test("takes rows up to the limit and refuses one byte more with 54000, once", () => {
    // The field's share is 180 and its name; the row is ["xy"] and a comma.
    const bytesMax = 181 + 7;
    const bytes = concatBytes([rowDescription("a"), dataRow("xy"), complete("SELECT 1"), READY]);

    expect(collect(bytes, { bytesMax })).toMatchObject({ refused: [], ready: [Status.IDLE] });
    const over = collect(concatBytes([bytes, bytes]), { bytesMax: bytesMax - 1 });
    expect(over.refused.map(({ code }) => code)).toEqual(["54000"]);
    expect(over.ready).toEqual([]);
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
    ];
    for (const bytes of cases) {
      expect(collect(bytes, {}).refused).toMatchObject([{ code: "08P01" }]);
    }
  });
});
