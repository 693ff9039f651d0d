// The masked text stands for all texts that differ from it in values only: it must have their class.
import { beforeAll, expect, test } from "bun:test";
import { maskLiterals } from "#pool/sql/mask-literals.ts";
import { StatementClassifier, loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { ALL_CASES } from "./statement-cases.ts";

beforeAll(loadStatementParser);

/** The text masked, from the middle of other bytes; undefined when it is not to be. */
function masked(text: string): string | undefined {
  const bytes = Buffer.from(`'1${text}1'`);
  const target = new Uint8Array(bytes.length);
  const length = maskLiterals(bytes, 2, bytes.length - 2, target);
  return length < 0 ? undefined : Buffer.from(target.subarray(0, length)).toString();
}

test.each([
  ["select 1", "select 1"],
  ["select abalance from accounts where aid = 4711", "select abalance from accounts where aid = 1"],
  ["INSERT INTO t VALUES (1.5, 'it''s', -3, $2);", "INSERT INTO t VALUES (1.1, '', -1, $2);"],
  ['select a1, "b\'2" from t2 where x > 10', 'select a1, "b\'2" from t2 where x > 1'],
  ["(values (12), ('x'))", "(values (1), (''))"],
  ["select 'a'\n'b'", "select ''\n''"],
])("%j is masked", (text, expected) => {
  expect(masked(text)).toBe(expected);
});

test.each([
  "explain (analyze 0) delete from t",
  "set work_mem = 1",
  "select 1; select 2",
  "select 1 -- one",
  "select /* one */ 1",
  "select $$a$$",
  "select E'a'",
  "select N'a'",
  "select U&'a'",
  "select x'1f'",
  "select 0x1f",
  "select 1_000",
  "select 1e5",
  "select 'open",
  'select "open',
  "select 1\0",
])("%j is left alone", (text) => {
  expect(masked(text)).toBeUndefined();
});

test("every statement of the table has the class of its masked text", () => {
  let compared = 0;
  for (const text of ALL_CASES.flatMap((group) => group.texts)) {
    const key = masked(text);
    if (key === undefined || key === text) continue;
    compared++;
    const own = new StatementClassifier().classify(text);

    expect([text, new StatementClassifier().classify(key)]).toEqual([text, own]);
  }
  expect(compared).toBeGreaterThan(40);
});

test("texts that differ in values share one decision, and a value that is refused decides for itself", () => {
  const classifier = new StatementClassifier();

  expect(classifier.classify("select 1::float(99)").pin).toBe("unparsed");
  expect(classifier.classify("select 1::float(9)").access).toBe("read");
  expect(classifier.classify("select 2::float(8)")).toBe(classifier.classify("select 3::float(7)"));
});
