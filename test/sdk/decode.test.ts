// What each PostgreSQL type becomes in JavaScript. The texts are PostgreSQL's own output.
import { describe, expect, test } from "bun:test";
import { decoderOf } from "../../sdk/src/decode.ts";

const instant = (text: string): Date => new Date(text);

const scalars: [type: string, oid: number, text: string, value: unknown][] = [
  ["bool", 16, "t", true],
  ["bool", 16, "f", false],
  ["int2", 21, "-32768", -32768],
  ["int4", 23, "2147483647", 2147483647],
  ["oid", 26, "4294967295", 4294967295],
  ["int8 stays text", 20, "9223372036854775807", "9223372036854775807"],
  ["numeric stays text", 1700, "0.10000000000000000001", "0.10000000000000000001"],
  ["float4", 700, "1.5", 1.5],
  ["float8", 701, "0.30000000000000004", 0.30000000000000004],
  ["float8", 701, "NaN", Number.NaN],
  ["float8", 701, "-Infinity", -Infinity],
  ["text", 25, "NULL", "NULL"],
  ["json", 114, ' {"a": [1, null]}', { a: [1, null] }],
  ["jsonb", 3802, "null", null],
  ["bytea", 17, "\\x00ff", new Uint8Array([0, 255])],
  ["bytea", 17, "\\x", new Uint8Array()],
  ["bytea in escape format stays text", 17, "a\\000", "a\\000"],
  ["bytea with half a byte stays text", 17, "\\x0", "\\x0"],
  ["date stays text", 1082, "2026-01-31", "2026-01-31"],
  ["timestamp stays text", 1114, "2026-01-31 12:00:00", "2026-01-31 12:00:00"],
  ["uuid", 2950, "0b8c…", "0b8c…"],
  ["an enum or another unknown type stays text", 16999, "{happy}", "{happy}"],
];

const instants: [text: string, value: unknown][] = [
  ["2026-01-31 23:59:59+00", instant("2026-01-31T23:59:59Z")],
  ["2026-01-31 23:59:59.1+00", instant("2026-01-31T23:59:59.100Z")],
  ["2026-01-31 23:59:59.123999+00", instant("2026-01-31T23:59:59.123Z")],
  ["2026-01-31 23:59:59.5+05:30", instant("2026-01-31T18:29:59.500Z")],
  ["2026-01-31 23:59:59-08", instant("2026-02-01T07:59:59Z")],
  ["1883-11-18 12:00:00-04:56:02", instant("1883-11-18T16:56:02Z")],
  ["0099-01-01 00:00:00+00", instant("0099-01-01T00:00:00Z")],
  ["0001-12-31 00:00:00+00 BC", instant("0000-12-31T00:00:00Z")],
  ["0044-03-15 12:00:00+00 BC", instant("-000043-03-15T12:00:00Z")],
  ["10000-01-01 00:00:00+00", instant("+010000-01-01T00:00:00Z")],
  ["275760-09-13 00:00:00+00", new Date(8.64e15)],
  ["275760-09-13 00:00:00.001+00", "275760-09-13 00:00:00.001+00"],
  ["infinity", Infinity],
  ["-infinity", -Infinity],
  ["31/01/2026 23:59:59 CET", "31/01/2026 23:59:59 CET"],
];

const arrays: [type: string, oid: number, text: string, value: unknown][] = [
  ["int4[]", 1007, "{}", []],
  ["int4[]", 1007, "{1,NULL,-3}", [1, null, -3]],
  [
    "int4[]",
    1007,
    "{{1,2},{3,4}}",
    [
      [1, 2],
      [3, 4],
    ],
  ],
  [
    "int4[] with lower bounds",
    1007,
    "[0:1][2:3]={{1,2},{3,4}}",
    [
      [1, 2],
      [3, 4],
    ],
  ],
  ["int4[] of six dimensions", 1007, "{{{{{{1}}}}}}", [[[[[[1]]]]]]],
  ["int8[]", 1016, "{9223372036854775807}", ["9223372036854775807"]],
  ["bool[]", 1000, "{t,f}", [true, false]],
  [
    "text[]",
    1009,
    '{a,"","NULL",NULL,"b c","d\\"\\\\e","{f,g}"}',
    ["a", "", "NULL", null, "b c", 'd"\\e', "{f,g}"],
  ],
  ["jsonb[]", 3807, '{"{\\"a\\": 1}",NULL}', [{ a: 1 }, null]],
  ["bytea[]", 1001, '{"\\\\x01"}', [new Uint8Array([1])]],
  ["timestamptz[]", 1185, '{"2026-01-31 00:00:00+00"}', [instant("2026-01-31T00:00:00Z")]],
];

describe("value", () => {
  test.each(scalars)("%s", (_type, oid, text, value) => {
    expect(decoderOf(oid)(text)).toEqual(value);
  });

  test.each(instants)("timestamptz %s", (text, value) => {
    expect(decoderOf(1184)(text)).toEqual(value);
  });

  test.each(arrays)("%s %i", (_type, oid, text, value) => {
    expect(decoderOf(oid)(text)).toEqual(value);
  });

  test.each([
    "",
    "1",
    "{",
    "{1",
    "{1,",
    "{1,}",
    "{,1}",
    "{1}}",
    "{1}x",
    '{"1}',
    '{"1\\',
    '{"1"2}',
    "{1{2}}",
    "[0:1]",
    "{{{{{{{1}}}}}}}",
  ])("%j is no array literal, and the error does not repeat it", (text) => {
    expect(() => decoderOf(1009)(text)).toThrow(new SyntaxError("malformed array literal"));
  });
});
