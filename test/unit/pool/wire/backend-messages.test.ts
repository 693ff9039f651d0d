// What the gateway says in PostgreSQL's words, and what it reads of what servers say.
import { describe, expect, test } from "bun:test";
import {
  CLOSE_COMPLETE_FRAME,
  PARSE_COMPLETE_FRAME,
  READY_IDLE_FRAME,
  encodeErrorResponse,
  encodeNegotiateProtocolVersion,
  encodeNotice,
  encodeParameterStatus,
  readCommandTag,
  readErrorFields,
  readFirstColumn,
  readParameterStatus,
} from "#pool/wire/backend-messages.ts";
import { encodeFrame } from "#pool/wire/backend-messages.ts";
import { Backend, concatBytes } from "#pool/wire/message-types.ts";
import { int32, server, splitFrames } from "#test/support/wire-frames.ts";

const encoder = new TextEncoder();

describe("errors and notices", () => {
  test("an error carries its severity twice, its SQLSTATE and our mark", () => {
    const frame = encodeErrorResponse({
      severity: "ERROR",
      sqlState: "57014",
      message: "query_wait_timeout",
      hint: "Raise default_pool_size.",
    });

    expect(Object.fromEntries(readErrorFields(frame))).toEqual({
      S: "ERROR",
      V: "ERROR",
      C: "57014",
      M: "query_wait_timeout",
      H: "Raise default_pool_size.",
      R: "walgate",
    });
    expect(splitFrames(frame)).toHaveLength(1);
  });

  test("a NUL in a text can't end its field", () => {
    const frame = encodeNotice({ severity: "NOTICE", sqlState: "00000", message: "a\0Rforged" });

    expect(readErrorFields(frame).get("M")).toBe("aRforged");
    expect(readErrorFields(frame).get("R")).toBe("walgate");
  });

  test("fields cut off in the middle are left out", () => {
    const frame = server.error("22P02", "invalid input");

    expect(Object.fromEntries(readErrorFields(frame.subarray(0, frame.length - 4)))).toEqual({
      S: "ERROR",
      V: "ERROR",
      C: "22P02",
    });
  });
});

test("the constant frames are what a server sends", () => {
  expect([PARSE_COMPLETE_FRAME, CLOSE_COMPLETE_FRAME, READY_IDLE_FRAME]).toEqual([
    server.parseComplete(),
    server.closeComplete(),
    server.ready("I"),
  ]);
});

test("a command tag is read with and without its NUL", () => {
  expect([
    readCommandTag(server.commandComplete("INSERT 0 1")),
    readCommandTag(encodeFrame(Backend.COMMAND_COMPLETE, encoder.encode("SELECT"))),
  ]).toEqual(["INSERT 0 1", "SELECT"]);
});

test("a parameter is read back, and a malformed one is not", () => {
  const frame = encodeParameterStatus("TimeZone", "Europe/Vienna");

  expect(readParameterStatus(frame)).toEqual(["TimeZone", "Europe/Vienna"]);
  expect(readParameterStatus(frame.subarray(0, frame.length - 1))).toBeUndefined();
  expect(readParameterStatus(frame.subarray(0, 8))).toBeUndefined();
});

test("NegotiateProtocolVersion names the options that were not understood", () => {
  const expected = encodeFrame(
    Backend.NEGOTIATE_PROTOCOL_VERSION,
    concatBytes([int32(0x30000), int32(1), encoder.encode("_pq_.x\0")]),
  );

  expect(encodeNegotiateProtocolVersion(0x30000, ["_pq_.x"])).toEqual(expected);
});

describe("the first column of a row", () => {
  test.each([
    ["a value", server.dataRow("0/1", "2"), "0/1"],
    ["NULL", server.dataRow(null), undefined],
    ["no column", server.dataRow(), undefined],
    ["a length past the frame", server.dataRow("abc").subarray(0, 12), undefined],
  ] as const)("with %s", (_, frame, expected) => {
    expect(readFirstColumn(frame)).toBe(expected);
  });
});
