import { expect, test } from "bun:test";
import { errorAnswer, jsonAnswer, runHeaders, toResponse } from "#gateway/http/http-answer.ts";
import { JsonBytes } from "#gateway/session/json-bytes.ts";
import { ownError } from "#gateway/session/server-error.ts";

test("an answer is JSON that no cache keeps", async () => {
  const response = toResponse(jsonAnswer(201, "{}", { "Walgate-Token": "t" }));

  expect({
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
  }).toEqual({
    status: 201,
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      "walgate-token": "t",
    },
    body: "{}",
  });
});

test("an error that passes says when to come back, whatever status it is given", () => {
  const retryAfter = (code: string) => errorAnswer(ownError(code, "m"), 400).headers["Retry-After"];

  expect([retryAfter("53300"), retryAfter("57P03"), retryAfter("42601")]).toEqual([
    "1",
    "1",
    undefined,
  ]);
});

test("a run without token or server has no headers for them", () => {
  const outcome = { ok: true, body: new JsonBytes() } as const;

  expect(runHeaders({ outcome, token: undefined, servedBy: undefined })).toEqual({});
  expect(runHeaders({ outcome, token: "t", servedBy: "replica:b" })).toEqual({
    "Walgate-Token": "t",
    "Walgate-Served-By": "replica:b",
  });
});
