// Comments leave, and what separated two tokens goes on separating them.
import { beforeAll, expect, test } from "bun:test";
import { withoutComments } from "#pool/sql/comments.ts";
import { loadStatementParser, StatementClassifier } from "#pool/sql/statement-classifier.ts";
import { READ } from "./case-group.ts";

beforeAll(loadStatementParser);

test.each([
  ["SELECT 1", "SELECT 1"],
  ["SELECT/* a */1 -- b", "SELECT 1"],
  ["SELECT 'a' -- b\n'c'", "SELECT 'a'\n'c'"],
  ["SELECT '--', \"/*\", $$ -- $$", "SELECT '--', \"/*\", $$ -- $$"],
  ["SELECT 1 /* broken", "SELECT 1 /* broken"],
])("%j becomes %j", (text, expected) => {
  expect(withoutComments(text)).toBe(expected);
});

test.each([
  "SELECT 1 WHERE 1 NOT /* c */ IN (2)",
  "SELECT 'a' NOT -- c\n LIKE 'b'",
  "SELECT * FROM generate_series(1, 3) WITH /* c */ ORDINALITY",
  "SELECT id FROM accounts ORDER BY id NULLS /* c */ FIRST",
  "SELECT U&'d!0061t' /* c */ UESCAPE '!'",
])("%j is understood in spite of its comment", (text) => {
  expect({ ...new StatementClassifier().classify(text) }).toEqual({ ...READ });
});
