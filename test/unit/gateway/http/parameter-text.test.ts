import { expect, test } from "bun:test";
import { readSqlRequest } from "#gateway/http/sql-request.ts";

/** Through the body, since numbers keep their digits there. */
function textsOf(params: string): readonly (string | null)[] {
  const request = readSqlRequest(new Headers(), `{"query":"","params":${params}}`);
  if (!request.ok) throw new Error(request.error.message);
  return request.value.statements[0]?.params ?? [];
}

const CASES: readonly (readonly [title: string, json: string, text: string | null])[] = [
  ["null stays NULL", "null", null],
  ["a string stays as it is", '"a\\"b\\n{}"', 'a"b\n{}'],
  ["a number keeps its digits", "1.50", "1.50"],
  ["a number beyond 2^53 keeps its digits", "9007199254740993", "9007199254740993"],
  ["a number beyond a double keeps its digits", "1e400", "1e400"],
  ["a negative zero keeps its sign", "-0", "-0"],
  ["true is a word", "true", "true"],
  ["false is a word", "false", "false"],
  ["an object is JSON text", '{"a":[1.0,"x"],"b":null}', '{"a":[1.0,"x"],"b":null}'],
  ["an empty array is a literal", "[]", "{}"],
  ["scalars in an array stand bare", "[1.50,true,null]", "{1.50,true,NULL}"],
  ["strings in an array are quoted", '["a","NULL","",null]', '{"a","NULL","",NULL}'],
  ["quotes and backslashes are escaped", '["a\\"b\\\\c"]', '{"a\\"b\\\\c"}'],
  ["control characters stay characters", '["a\\nb\\u0001"]', '{"a\nb\u0001"}'],
  ["nested arrays nest", '[[1,2],["x"]]', '{{1,2},{"x"}}'],
  ["objects in an array are quoted JSON", '[{"a":"b\\"c"}]', '{"{\\"a\\":\\"b\\\\\\"c\\"}"}'],
];

for (const [title, json, text] of CASES) {
  test(title, () => {
    expect(textsOf(`[${json}]`)).toEqual([text]);
  });
}
