import { describe, expect, test } from "bun:test";
import { type Field, type RowFormat, arrayJson, rowEncoder } from "#gateway/session/result-json.ts";

function field(name: string, dataTypeID: number): Field {
  return {
    name,
    tableID: 0,
    columnID: 0,
    dataTypeID,
    dataTypeSize: -1,
    dataTypeModifier: -1,
    format: "text",
  };
}

function encode(
  cells: readonly (readonly [name: string, oid: number, cell: string | null])[],
  format: RowFormat,
): string {
  const fields = cells.map(([name, oid]) => field(name, oid));
  return rowEncoder(fields, format)(cells.map(([, , cell]) => cell));
}

const RAW = { isArray: true, isRawText: true };
const DECODED = { isArray: true, isRawText: false };

describe("a row", () => {
  test("as raw text holds each cell as a string and NULL as null", () => {
    const row = encode(
      [
        ["a", 23, "1"],
        ["b", 3802, '{"x": 1}'],
        ["c", 25, null],
      ],
      RAW,
    );

    expect(row).toBe('["1","{\\"x\\": 1}",null]');
  });

  test("as an object keeps the last of two equal names, and __proto__ as a name like any other", () => {
    const cells = [
      ["a", 23, "1"],
      ["__proto__", 25, "p"],
      ["a", 23, "2"],
    ] as const;

    expect(encode(cells, { isArray: false, isRawText: false })).toBe('{"a":2,"__proto__":"p"}');
  });

  test("escapes what JSON does not take as it is", () => {
    expect(JSON.parse(encode([["a", 25, 'tab\t"\\\u2028\u0001']], RAW))).toEqual([
      'tab\t"\\\u2028\u0001',
    ]);
  });
});

describe("a decoded cell", () => {
  const cases: readonly (readonly [title: string, oid: number, text: string, json: string])[] = [
    ["bool", 16, "t", "true"],
    ["bool", 16, "f", "false"],
    ["int2", 21, "-7", "-7"],
    ["int4", 23, "2147483647", "2147483647"],
    ["int8 stays a string", 20, "9007199254740993", '"9007199254740993"'],
    ["numeric stays a string", 1700, "1.50", '"1.50"'],
    ["float4", 700, "1.5", "1.5"],
    ["float8", 701, "1e+20", "1e+20"],
    ["float8 NaN", 701, "NaN", '"NaN"'],
    ["float8 infinity", 701, "-Infinity", '"-Infinity"'],
    ["json is spliced", 114, '{"a": 12345678901234567890}', '{"a": 12345678901234567890}'],
    ["jsonb is spliced", 3802, "[1, null]", "[1, null]"],
    ["an unknown type", 99_999, "x", '"x"'],
    ["int4[]", 1007, "{1,NULL,3}", "[1,null,3]"],
    ["int4[][]", 1007, "{{1,2},{3,4}}", "[[1,2],[3,4]]"],
    ["int4[] with bounds", 1007, "[0:1]={1,2}", "[1,2]"],
    ["bool[]", 1000, "{t,f}", "[true,false]"],
    ["float8[]", 1022, "{0.5,NaN}", '[0.5,"NaN"]'],
    ["int8[]", 1016, "{1}", '["1"]'],
    [
      "text[]",
      1009,
      '{a,"b,c","d\\"e\\\\","NULL",NULL,""}',
      '["a","b,c","d\\"e\\\\","NULL",null,""]',
    ],
    ["jsonb[]", 3807, '{"{\\"a\\": [1, 2]}",NULL}', '[{"a": [1, 2]},null]'],
    ["an empty array", 1007, "{}", "[]"],
    ["box[] stays text", 1020, "{(1,1),(0,0)}", '"{(1,1),(0,0)}"'],
  ];
  for (const [title, oid, text, json] of cases) {
    test(`${title}: ${text} becomes ${json}`, () => {
      expect(encode([["a", oid, text]], DECODED)).toBe(`[${json}]`);
    });
  }

  test("an array that ends in the middle, which no server sends, still ends", () => {
    expect(arrayJson('{"a', (text) => text)).toBe("[a");
  });
});
