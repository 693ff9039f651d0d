import { describe, expect, test } from "bun:test";
import { type Field, ResultShapes } from "#gateway/session/result-shape.ts";
import { concatBytes, writeInt32 } from "#pool/wire/message-types.ts";

const ROWS = { isArray: true, isRawText: true };

/** RowDescription with one column of 19 bytes and its name, for each name. */
function description(...names: string[]): Uint8Array {
  const columns = names.map((name) => {
    const tail = new Uint8Array(19);
    tail.set([0x80, 0, 0, 1, 0, 2, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1);
    return concatBytes([new TextEncoder().encode(name), tail]);
  });
  const frame = concatBytes([Uint8Array.of(0x54, 0, 0, 0, 0, 0, names.length), ...columns]);
  writeInt32(frame, 1, frame.length - 1);
  return frame;
}

function recording() {
  const seen: (readonly Field[])[] = [];
  const shapes = new ResultShapes({
    head: (fields) => {
      seen.push(fields);
      return "head";
    },
    tail: () => "tail",
  });
  seen.length = 0;
  return { shapes, seen };
}

describe("the shape of a result", () => {
  test("is worked out from all that its description says", () => {
    const { shapes, seen } = recording();
    const frame = description("é", "\ufeffb");

    // As it lies in what was read.
    const chunk = concatBytes([Uint8Array.of(1, 2), frame, Uint8Array.of(3)]);
    const shape = shapes.of(chunk, 2, 2 + frame.length, ROWS);

    expect(shape?.columnCount).toBe(2);
    expect(seen).toEqual([
      ["é", "\ufeffb"].map((name) => ({
        name,
        tableID: 0x8000_0001,
        columnID: 2,
        dataTypeID: 25,
        dataTypeSize: -1,
        dataTypeModifier: -1,
        format: "text",
      })),
    ]);
  });

  test("is remembered for the same description in the same format, and for no other", () => {
    const { shapes, seen } = recording();
    const of = (frame: Uint8Array, format = ROWS) => shapes.of(frame, 0, frame.length, format);

    const first = of(description("a"));
    expect(of(description("a"))).toBe(first);
    expect(seen).toHaveLength(1);
    const others = [
      of(description("b")),
      of(description("a"), { isArray: false, isRawText: true }),
      of(description("a"), { isArray: true, isRawText: false }),
      of(description("a"), { isArray: false, isRawText: false }),
    ];
    expect(seen).toHaveLength(5);
    expect(new Set([first, ...others]).size).toBe(5);
  });

  test("is remembered up to 2,048 bytes of description and worked out again beyond", () => {
    const { shapes, seen } = recording();
    const fits = description("n".repeat(2_048 - 7 - 19));
    const exceeds = description("n".repeat(2_048 - 7 - 19 + 1));
    expect(fits.length).toBe(2_048);

    for (const frame of [fits, fits, exceeds, exceeds]) shapes.of(frame, 0, frame.length, ROWS);

    expect(seen).toHaveLength(3);
  });

  test("of 500 results is remembered, and of one more the oldest is not", () => {
    const { shapes, seen } = recording();
    const ask = (index: number) => {
      const frame = description(`c${index}`);
      shapes.of(frame, 0, frame.length, ROWS);
    };

    for (let index = 0; index < 500; index++) ask(index);
    for (let index = 0; index < 500; index++) ask(index);
    expect(seen).toHaveLength(500);
    ask(500);
    ask(0);
    expect(seen).toHaveLength(502);
  });

  test("of a description cut short or too long there is none", () => {
    const { shapes } = recording();
    const frame = description("a", "b");

    for (let size = 0; size < frame.length; size++) {
      expect(shapes.of(frame, 0, size, ROWS)).toBeUndefined();
    }
    expect(shapes.of(concatBytes([frame, frame]), 0, frame.length + 1, ROWS)).toBeUndefined();
  });
});
