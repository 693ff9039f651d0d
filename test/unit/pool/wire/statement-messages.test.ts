import { expect, test } from "bun:test";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import { readBind } from "#pool/wire/frontend-messages.ts";
import { parseText } from "#test/support/message-text.ts";
import { encodeStatement, PARAMETERS_MAX } from "#pool/wire/statement-messages.ts";

function framesOf(bytes: Uint8Array): { type: string; bytes: Uint8Array }[] {
  const frames: { type: string; bytes: Uint8Array }[] = [];
  const splitter = new FrameSplitter(
    {
      frame: (type, chunk, start, end) =>
        frames.push({ type: String.fromCharCode(type), bytes: chunk.subarray(start, end) }),
      largeStart: (type, prefix) => frames.push({ type: String.fromCharCode(type), bytes: prefix }),
      largeBytes: () => {},
      violation: (reason) => {
        throw new Error(reason);
      },
    },
    1_000_000,
  );
  splitter.push(bytes);
  return frames;
}

test("a statement is one Parse, Bind, Describe and Execute of the unnamed statement and portal", () => {
  const frames = framesOf(encodeStatement({ text: "select $1, $2", params: ["é", null] }));

  expect(frames.map(({ type }) => type)).toEqual(["P", "B", "D", "E"]);
  const [parse, bind, describe, execute] = frames.map(({ bytes }) => bytes);
  expect(parseText(parse ?? new Uint8Array())).toEqual({ name: "", text: "select $1, $2" });
  expect(readBind(bind ?? new Uint8Array())).toMatchObject({ statement: "" });
  // No format, so all are text; two values of which the second is NULL; no result format.
  expect(bind?.subarray(7)).toEqual(
    new Uint8Array([0, 0, 0, 2, 0, 0, 0, 2, 0xc3, 0xa9, 255, 255, 255, 255, 0, 0]),
  );
  expect(describe).toEqual(new Uint8Array([0x44, 0, 0, 0, 6, 0x50, 0]));
  expect(execute).toEqual(new Uint8Array([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0]));
});

test("the most parameters that Bind can count are counted right", () => {
  const params = Array.from({ length: PARAMETERS_MAX }, () => null);

  const bind = framesOf(encodeStatement({ text: "select", params }))[1]?.bytes ?? new Uint8Array();

  expect(bind.subarray(9, 11)).toEqual(new Uint8Array([255, 255]));
});

test("under a name, Parse makes the statement and Bind uses it, and nothing else changes", () => {
  const message = { text: "select $1", params: ["1", ""] };
  const unnamed = framesOf(encodeStatement(message));
  const named = framesOf(encodeStatement({ ...message, name: "s1" }));
  const [parse, bind, ...rest] = named.map(({ bytes }) => bytes);

  expect(parseText(parse ?? new Uint8Array())).toEqual({ name: "s1", text: "select $1" });
  expect(readBind(bind ?? new Uint8Array())).toMatchObject({ statement: "s1" });
  expect(bind?.subarray(9)).toEqual(unnamed[1]?.bytes.subarray(7));
  expect(rest).toEqual(unnamed.slice(2).map(({ bytes }) => bytes));
});
