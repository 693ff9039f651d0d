// What is read of frontend messages, and what is written in their place.
import { describe, expect, test } from "bun:test";
import {
  encodeBindHead,
  encodeCloseStatement,
  encodeCopyFail,
  encodeDescribeStatement,
  encodeParse,
  encodeQuery,
  readBind,
  readNamedObject,
  readParse,
  readQuery,
} from "#pool/wire/frontend-messages.ts";
import { encodeFrame } from "#pool/wire/backend-messages.ts";
import { Frontend, HEADER_BYTES, concatBytes } from "#pool/wire/message-types.ts";
import { parseText, queryText } from "#test/support/message-text.ts";
import { client, int16 } from "#test/support/wire-frames.ts";

const encoder = new TextEncoder();

function frame(type: number, text: string): Uint8Array {
  return encodeFrame(type, encoder.encode(text));
}

describe("Query", () => {
  test("its text is read as UTF-8", () => {
    expect(queryText(client.query("select 'ä'"))).toBe("select 'ä'");
  });

  test.each([
    ["without its NUL", frame(Frontend.QUERY, "select 1")],
    ["with a NUL inside", frame(Frontend.QUERY, "select\0 1\0")],
    ["empty", frame(Frontend.QUERY, "")],
  ])("one %s is malformed", (_, bytes) => {
    expect(readQuery(bytes)).toBeUndefined();
  });

  test("what we write ourselves reads back", () => {
    expect(encodeQuery("DISCARD ALL")).toEqual(client.query("DISCARD ALL"));
    expect(encodeCopyFail("gone")).toEqual(client.copyFail("gone"));
  });
});

describe("Parse", () => {
  test("name, text and the place of the tail are read", () => {
    const bytes = client.parse("s1", "select $1", [23]);

    expect(readParse(bytes)).toEqual({ name: "s1", tailOffset: 8, textEnd: 17 });
    expect(parseText(bytes)).toEqual({ name: "s1", text: "select $1" });
  });

  test("a name keeps its bytes, whatever they are in", () => {
    const bytes = encodeFrame(
      Frontend.PARSE,
      concatBytes([new Uint8Array([0xff, 0xfe, 0]), encoder.encode("select 1\0"), int16(0)]),
    );

    expect(readParse(bytes)?.name).toBe("\u00ff\u00fe");
  });

  test.each([
    ["without types", concatBytes([encoder.encode("s1\0select 1\0")])],
    ["with fewer types than it says", concatBytes([encoder.encode("s1\0select 1\0"), int16(1)])],
    [
      "with bytes behind its types",
      concatBytes([encoder.encode("s1\0select 1\0"), int16(0), int16(0)]),
    ],
    ["without a text", encoder.encode("s1\0")],
    ["without a name", encoder.encode("s1")],
  ])("one %s is malformed", (_, body) => {
    expect(readParse(encodeFrame(Frontend.PARSE, body))).toBeUndefined();
  });

  test("under another name it is the same from the text on", () => {
    const original = client.parse("a long name", "select $1", [23]);
    const message = readParse(original);
    if (message === undefined) throw new Error("unreadable");

    const renamed = encodeParse(encoder.encode("wg_1"), original.subarray(message.tailOffset));

    expect(renamed).toEqual(client.parse("wg_1", "select $1", [23]));
  });
});

describe("Bind", () => {
  test("both names are read", () => {
    expect(readBind(client.bind("p", "s1"))).toEqual({
      statement: "s1",
      statementOffset: 7,
      tailOffset: 10,
    });
  });

  test("a prefix is enough as long as both names are in it", () => {
    const bytes = client.bind("p", "s1", ["x".repeat(100)]);

    expect(readBind(bytes.subarray(0, 10))?.statement).toBe("s1");
    expect(readBind(bytes.subarray(0, 9))).toBeUndefined();
  });

  test.each(["wg_1", "", "a longer name than before"])(
    "under the name %p the rest is untouched",
    (name) => {
      const original = client.bind("portal", "s1", ["one", null]);
      const message = readBind(original);
      if (message === undefined) throw new Error("unreadable");

      const head = encodeBindHead(original, 0, message, encoder.encode(name));

      expect(concatBytes([head, original.subarray(message.tailOffset)])).toEqual(
        client.bind("portal", name, ["one", null]),
      );
    },
  );
});

describe("Describe and Close", () => {
  test("a statement and a portal are told apart", () => {
    expect([
      readNamedObject(client.describeStatement("s1")),
      readNamedObject(client.closePortal("")),
    ]).toEqual([
      { kind: "statement", name: "s1" },
      { kind: "portal", name: "" },
    ]);
  });

  test.each([
    ["of another kind", "Xs1\0"],
    ["without a NUL", "Ss1"],
    ["with bytes behind its name", "Ss1\0\0"],
    ["that is empty", ""],
  ])("one %s is malformed", (_, body) => {
    expect(readNamedObject(frame(Frontend.DESCRIBE, body))).toBeUndefined();
  });

  test("what we write ourselves reads back", () => {
    const name = encoder.encode("wg_7");

    expect(encodeDescribeStatement(name)).toEqual(client.describeStatement("wg_7"));
    expect(encodeCloseStatement(name)).toEqual(client.closeStatement("wg_7"));
  });
});

describe("inside a chunk", () => {
  const behind = client.query("select 2");
  const messages: readonly [string, Uint8Array, Reader][] = [
    ["Query", client.query("select 1"), readQuery],
    ["Parse", client.parse("s1", "select $1", [23]), readParse],
    ["Bind", client.bind("p", "s1", ["one"]), readBind],
    ["Describe", client.describeStatement("s1"), readNamedObject],
  ];

  test.each(messages)("%s is read as it is alone, whatever stands around it", (_, bytes, read) => {
    const chunk = concatBytes([behind, bytes, behind]);
    const offset = behind.length;

    const alone = read(bytes);
    const inside = read(chunk, offset, offset + bytes.length);

    expect(shifted(inside, offset)).toEqual(shifted(alone, 0));
  });

  test.each(messages)(
    "%s without its NUL does not read on into the next message",
    (_, bytes, read) => {
      const cut = bytes.slice(0, 7).fill(0x61, HEADER_BYTES);

      expect(read(concatBytes([cut, behind]), 0, cut.length)).toBeUndefined();
    },
  );
});

/** Offsets counted from the message's beginning. */
function shifted(read: unknown, offset: number): unknown {
  if (typeof read === "number") return read - offset;
  if (typeof read !== "object" || read === null) return read;
  const entries = Object.entries(read).map(([key, value]) => [
    key,
    typeof value === "number" ? value - offset : value,
  ]);
  return Object.fromEntries(entries);
}

type Reader = (chunk: Uint8Array, start?: number, end?: number) => unknown;
