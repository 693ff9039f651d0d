// The table of statements, and the limits of length, nesting and the cache.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser, StatementClassifier } from "#pool/sql/statement-classifier.ts";
import { LOCAL, READ, UNREADABLE, WRITE } from "./case-group.ts";
import { ALL_CASES } from "./statement-cases.ts";

beforeAll(loadStatementParser);

const classify = (text: string): unknown => ({ ...new StatementClassifier().classify(text) });

/** The limits that `statement-classifier.ts` and `nesting-bound.ts` state. */
const PARSED_LENGTH_MAX = 65_536;
const SCANNED_LENGTH_MAX = 2_097_152;

describe.each(ALL_CASES.map((group): [string, typeof group] => [group.name, group]))(
  "%s",
  (_, { expected, texts }) => {
    test.each(texts)("%j has the class that a person gave it", (text) => {
      expect(classify(text)).toEqual({ ...expected });
    });
  },
);

test("the table holds at least 250 different statements", () => {
  const texts = ALL_CASES.flatMap((group) => group.texts);

  expect(new Set(texts).size).toBeGreaterThanOrEqual(250);
});

describe("long texts", () => {
  const padded = (text: string, length: number): string =>
    text.replace("?", "x".repeat(length - text.length + 1));

  test("the longest text that is parsed can still be a read, and one more character can't", () => {
    expect(classify(padded("SELECT '?'", PARSED_LENGTH_MAX))).toEqual({ ...READ });
    expect(classify(padded("SELECT '?'", PARSED_LENGTH_MAX + 1))).toEqual({ ...WRITE });
  });

  test("a long text of one statement without session effects doesn't pin for its length", () => {
    const long = PARSED_LENGTH_MAX * 2;
    const texts = [
      "SELECT '?'",
      "(SELECT '?')",
      "WITH x AS (SELECT '?') DELETE FROM t USING x;",
      "VALUES ('?')",
      "INSERT INTO t VALUES ('?') -- done",
      "INSERT INTO temp VALUES ('set_config(''a'', ''b'', false); ?')",
      "UPDATE t SET a = $$ ; ? $$",
      "DELETE FROM t WHERE a = E'\\'; ?'",
      "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND u.b = '?' THEN DELETE",
      "SELECT a INTO t FROM u WHERE b = '?'",
    ];

    for (const text of texts) expect([text, classify(padded(text, long))]).toEqual([text, WRITE]);
  });

  test("a long text pins if its tokens can't prove it harmless", () => {
    const expected = { ...UNREADABLE, pin: "too_long" };
    const texts = [
      "SELECT set_config('a', '?', false)",
      "SELECT \"currval\"('?')",
      "SELECT U&\"set\\005fconfig\"('a', '?', false)",
      "SELECT '?' INTO TEMP t",
      "INSERT INTO pg_temp.t VALUES ('?')",
      "INSERT INTO pg_temp_3.t VALUES ('?')",
      "INSERT INTO t VALUES (1e'?')",
      "CREATE TABLE t (a text DEFAULT '?')",
      "DO $$ ? $$",
      "SET a.b = '?'",
      "EXECUTE q('?')",
    ];

    for (const text of texts) {
      expect([text, classify(padded(text, PARSED_LENGTH_MAX + 1))]).toEqual([text, expected]);
    }
    expect(classify(padded("SELECT '?'; SELECT 2", PARSED_LENGTH_MAX + 1))).toEqual({
      ...expected,
      statementCount: 2,
    });
  });

  test("a long COPY keeps its direction", () => {
    const long = PARSED_LENGTH_MAX + 1;

    expect(classify(padded("COPY (SELECT '?' FROM stdin) TO STDOUT", long))).toEqual({
      ...WRITE,
      copy: "out",
    });
    expect(classify(padded('COPY t ("?") FROM STDIN', long))).toEqual({ ...WRITE, copy: "in" });
    expect(classify(padded("COPY t TO '/?'", long))).toEqual({ ...WRITE });
  });

  test("a text beyond the limit of the token scan pins unseen", () => {
    expect(classify(padded("INSERT INTO t VALUES ('?')", SCANNED_LENGTH_MAX))).toEqual({
      ...WRITE,
    });
    expect(classify(padded("INSERT INTO t VALUES ('?')", SCANNED_LENGTH_MAX + 1))).toEqual({
      ...UNREADABLE,
      pin: "too_long",
    });
  });
});

describe("deep texts", () => {
  test.each([
    ["parentheses", `SELECT ${"(".repeat(20_000)}1${")".repeat(20_000)}`],
    ["additions", `SELECT ${"1+".repeat(20_000)}1`],
    ["negations", `SELECT ${"NOT ".repeat(12_000)}true`],
    ["subscripts", `SELECT ${"ARRAY[".repeat(5_000)}1${"]".repeat(5_000)}`],
    ["cases", `SELECT ${"CASE WHEN a THEN ".repeat(2_000)}1${" END".repeat(2_000)}`],
    [
      "names that look like keywords",
      `SELECT ${"(".repeat(1_500)}${"1+1+1+a.end+".repeat(1_500)}1${")".repeat(1_500)}`,
    ],
  ])("thousands of levels of %s are never parsed and don't disturb the next text", (_, text) => {
    expect(classify(text)).toEqual({ ...WRITE });
    expect(classify("SELECT 1")).toEqual({ ...READ });
  });

  test("4,000 tokens in one nest are parsed, and more aren't", () => {
    expect(classify(`SELECT ${"1+".repeat(1_999)}1`)).toEqual({ ...READ });
    expect(classify(`SELECT -${"1+".repeat(1_999)}1`)).toEqual({ ...WRITE });
  });

  test("a deep text with a session effect pins", () => {
    expect(classify(`SELECT ${"1+".repeat(20_000)}lastval()`)).toEqual({
      ...UNREADABLE,
      pin: "too_long",
    });
  });

  test("long flat texts are parsed", () => {
    const texts = [
      `SELECT * FROM t WHERE ${"a = 1 OR ".repeat(6_000)}b`,
      `SELECT * FROM t WHERE a IN (${"1,".repeat(30_000)}1)`,
      `SELECT 1${" UNION ALL SELECT 1, 2, 3".repeat(2_000)}`,
      `SELECT 1 FROM a${" JOIN b ON a.id = b.id AND a.x = b.x".repeat(500)}`,
      `SELECT CASE ${"WHEN a = 1 THEN 2 ".repeat(3_000)}END`,
    ];

    for (const text of texts) {
      expect([text.slice(0, 40), classify(text)]).toEqual([text.slice(0, 40), READ]);
    }
  });
});

describe("the cache", () => {
  test("the same text gets the same frozen object, and another classifier an equal one", () => {
    const classifier = new StatementClassifier();
    const first = classifier.classify("SELECT 1");

    expect(classifier.classify("SELECT 1")).toBe(first);
    expect(Object.isFrozen(first)).toBe(true);
    expect(new StatementClassifier().classify("SELECT 1")).toEqual(first);
  });

  test("the text that was used longest ago leaves first", () => {
    const classifier = new StatementClassifier({ cacheEntriesMax: 2 });
    const one = classifier.classify("SELECT a");
    const two = classifier.classify("SELECT b");
    classifier.classify("SELECT a");
    classifier.classify("SELECT c");

    expect(classifier.classify("SELECT a")).toBe(one);
    expect(classifier.classify("SELECT b")).not.toBe(two);
  });

  test("a text of 4,096 characters is kept, and a longer one isn't", () => {
    const classifier = new StatementClassifier();
    const kept = `SELECT ${"1".repeat(4_089)}`;
    const longer = `${kept}1`;

    expect(classifier.classify(kept)).toBe(classifier.classify(kept));
    expect(classifier.classify(longer)).not.toBe(classifier.classify(longer));
  });

  test("a text that lies in a chunk is read as it is alone, and its other words with it", () => {
    const classifier = new StatementClassifier();
    const read = (text: string): unknown => {
      const chunk = Buffer.from(`'1 ${text}\0select 2`);
      return classifier.read(chunk, 3, 3 + Buffer.byteLength(text));
    };
    const facts = (text: string, maySetLocally: boolean, resetsAll: boolean): unknown => ({
      class: classifier.classify(text),
      maySetLocally,
      resetsAll,
    });
    for (const text of ["select 'ä', 1", "SELECT 'ö' , 22", "delete from t where a = $1"]) {
      expect(read(text)).toEqual(facts(text, false, false));
    }
    // Read twice: as new, and as known.
    for (let i = 0; i < 2; i++) {
      expect(read("SET  Local a = 1")).toEqual(facts("SET  Local a = 1", true, false));
      expect(read("reset all")).toEqual(facts("reset all", false, true));
      const call = `select set_config('a', '${i}', true)`;
      expect(read(call)).toEqual(facts(call, true, false));
    }
  });

  test("a value that is a word of a setting makes no other text of the same shape one", () => {
    const classifier = new StatementClassifier();
    const read = (text: string): unknown => classifier.read(Buffer.from(text), 0, text.length);

    expect(read("insert into t values ('set local')")).toMatchObject({ maySetLocally: false });
    expect(read("insert into t values ('a')")).toBe(read("insert into t values ('set local')"));
  });

  test("all texts together stay below 8 million characters", () => {
    const classifier = new StatementClassifier();
    const text = (index: number): string => `/*${"x".repeat(3_990)}*/ VALUES (${index})`;
    const first = classifier.classify(text(1_000));
    const second = classifier.classify(text(1_001));
    for (let index = 2; index < 2_003; index += 1) classifier.classify(text(1_000 + index));

    expect(classifier.classify(text(1_000))).not.toBe(first);
    expect(second).toEqual({ ...LOCAL, access: "read" });
  });
});
