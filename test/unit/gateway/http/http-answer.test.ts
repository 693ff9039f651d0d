import { expect, test } from "bun:test";
import { errorAnswer, jsonAnswer, runHeaders } from "#gateway/http/http-answer.ts";
import { ownError } from "#gateway/session/server-error.ts";

test("an answer is JSON that no cache keeps", () => {
  const answer = jsonAnswer(200, "{}", new Headers({ "Walgate-Token": "t" }));

  expect(Object.fromEntries(answer.headers)).toEqual({
    "content-type": "application/json",
    "cache-control": "no-store",
    "walgate-token": "t",
  });
});

test("an error that passes says when to come back, whatever status it is given", () => {
  const retryAfter = (code: string) =>
    errorAnswer(ownError(code, "m"), 400).headers.get("Retry-After");

  expect([retryAfter("53300"), retryAfter("57P03"), retryAfter("42601")]).toEqual(["1", "1", null]);
});

test("a run without token or server has no headers for them", () => {
  const outcome = { ok: true, results: [] } as const;

  expect([...runHeaders({ outcome, token: undefined, servedBy: undefined })]).toEqual([]);
  expect(Object.fromEntries(runHeaders({ outcome, token: "t", servedBy: "replica:b" }))).toEqual({
    "walgate-token": "t",
    "walgate-served-by": "replica:b",
  });
});
