import { describe, expect, test } from "bun:test";
import { JsonBytes } from "#gateway/session/json-bytes.ts";
import { cellWriter } from "#gateway/session/result-json.ts";

/** Written from the middle of a chunk, as cells lie. */
function written(oid: number, text: string, isRawText = false): string {
  const out = new JsonBytes();
  const chunk = new TextEncoder().encode(`7${text}}7`);
  cellWriter(oid, isRawText)(out, chunk, 1, chunk.length - 2);
  return new TextDecoder().decode(out.whole());
}

test("a raw cell is a string whatever its type", () => {
  expect(written(23, "1", true)).toBe('"1"');
  expect(written(3802, '{"x": 1}', true)).toBe('"{\\"x\\": 1}"');
  expect(written(1007, "{1}", true)).toBe('"{1}"');
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
    ["text[] of one quoted element", 1009, '{"x y"}', '["x y"]'],
    ["text[] with a word that begins as NULL", 1009, "{NULLS}", '["NULLS"]'],
    ["float8[] with a sign", 1022, "{-1.5,-Infinity}", '[-1.5,"-Infinity"]'],
    ["a text beyond ASCII", 25, "é😀", '"é😀"'],
    ["json beyond ASCII", 114, '{"é": 1}', '{"é": 1}'],
    ["text[] beyond ASCII", 1009, '{"é,\\"",ü}', '["é,\\"","ü"]'],
    ["box[] stays text", 1020, "{(1,1),(0,0)}", '"{(1,1),(0,0)}"'],
  ];
  for (const [title, oid, text, json] of cases) {
    test(`${title}: ${text} becomes ${json}`, () => {
      expect(written(oid, text)).toBe(json);
    });
  }

  test("an array that ends in the middle, which no server sends, still ends", () => {
    expect(written(1009, '{"a')).toBe('["a"');
    expect(written(1009, '{"a\\')).toBe('["a\\\\"');
    expect(written(1009, "[0:1]")).toBe("");
  });
});
