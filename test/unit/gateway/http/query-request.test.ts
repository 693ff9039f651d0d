import { expect, test } from "bun:test";
import { readQueryRequest } from "#gateway/http/query-request.ts";

function read(body: unknown) {
  const result = readQueryRequest(JSON.stringify(body));
  return result.ok ? result.value : result.error;
}

test("a query with parameters is one statement whose rows are arrays of text", () => {
  expect(read({ query: "select $1, $2", params: ["1", null] })).toEqual({
    text: "select $1, $2",
    params: ["1", null],
    format: { isArray: true, isRawText: true },
  });
  expect(read({ query: "select" })).toMatchObject({ text: "select", params: [] });
});

test("a body of another shape is refused, an unknown key without being repeated", () => {
  for (const body of [{}, { query: 1 }, { query: "a", params: "b" }, { query: "a", hunter2: 1 }]) {
    const error = read(body);

    expect(error).toMatchObject({ code: "08P01" });
    expect(JSON.stringify(error)).not.toContain("hunter2");
  }
});
