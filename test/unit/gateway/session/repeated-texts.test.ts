// Which texts are worth a prepared statement: those that come often, and that PostgreSQL keeps plans for.
import { beforeAll, expect, test } from "bun:test";
import { RepeatedTexts } from "#gateway/session/repeated-texts.ts";
import { loadStatementParser, StatementClassifier } from "#pool/sql/statement-classifier.ts";

beforeAll(loadStatementParser);

function texts(threshold: number): RepeatedTexts {
  const classifier = new StatementClassifier();
  return new RepeatedTexts(threshold, (text) => classifier.classify(text));
}

const frequencies = (repeated: RepeatedTexts, text: string, times: number): boolean[] =>
  Array.from({ length: times }, () => repeated.isFrequent(text));

test("a text is frequent from its time at the threshold on, each text for itself", () => {
  const repeated = texts(3);

  expect(frequencies(repeated, "select $1", 5)).toEqual([false, false, true, true, true]);
  expect(frequencies(repeated, "select $1 ", 2)).toEqual([false, false]);
  expect(frequencies(texts(1), "select 1", 2)).toEqual([true, true]);
});

test("with a threshold of 0 nothing is", () => {
  expect(frequencies(texts(0), "select 1", 3)).toEqual([false, false, false]);
});

test("only what has a plan, no state of its own and no way to commit is prepared", () => {
  const planned = [
    "select 1",
    " (select 1)",
    "INSERT INTO t VALUES ($1) RETURNING id",
    "update t set a = 1",
    "delete from t",
    "merge into t using s on true when matched then delete",
    "with a as (select 1) select * from a",
    "values (1)",
    "table t",
  ];
  const others = [
    "call p()",
    "do $$ begin commit; end $$",
    "begin",
    "set a.b = 1",
    "vacuum",
    "selec",
    "select set_config('a.b', '1', false)",
    "select pg_advisory_lock(1)",
    "select 1; select 2; begin",
    "",
  ];
  const repeated = texts(1);

  expect(planned.filter((text) => !repeated.isFrequent(text))).toEqual([]);
  expect(others.filter((text) => repeated.isFrequent(text))).toEqual([]);
});

test("long texts are not counted, and too many texts make counting begin anew", () => {
  const repeated = texts(2);
  const long = `select '${"x".repeat(4_096)}'`;
  expect(frequencies(repeated, long, 3)).toEqual([false, false, false]);

  expect(frequencies(repeated, "select 1", 2)).toEqual([false, true]);
  for (let i = 0; i < 10_000; i++) repeated.isFrequent(`select ${i} as n`);
  expect(frequencies(repeated, "select 1", 2)).toEqual([false, true]);
});
