import { expect, test } from "bun:test";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import { readBind, readParse } from "#pool/wire/frontend-messages.ts";
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
  const frames = framesOf(encodeStatement("select $1, $2", ["é", null]));

  expect(frames.map(({ type }) => type)).toEqual(["P", "B", "D", "E"]);
  const [parse, bind, describe, execute] = frames.map(({ bytes }) => bytes);
  expect(readParse(parse ?? new Uint8Array())).toMatchObject({ name: "", text: "select $1, $2" });
  expect(readBind(bind ?? new Uint8Array())).toMatchObject({ statement: "" });
  // Two text formats, two values of which the second is NULL, one result format: text.
  expect(bind?.subarray(7)).toEqual(
    new Uint8Array([
      0, 2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0xc3, 0xa9, 255, 255, 255, 255, 0, 1, 0, 0,
    ]),
  );
  expect(describe).toEqual(new Uint8Array([0x44, 0, 0, 0, 6, 0x50, 0]));
  expect(execute).toEqual(new Uint8Array([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0]));
});

test("the most parameters that Bind can count are counted right", () => {
  const params = Array.from({ length: PARAMETERS_MAX }, () => null);

  const bind = framesOf(encodeStatement("select", params))[1]?.bytes ?? new Uint8Array();

  expect(bind.subarray(7, 9)).toEqual(new Uint8Array([255, 255]));
});
