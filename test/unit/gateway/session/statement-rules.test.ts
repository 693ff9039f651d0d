import { beforeAll, describe, expect, test } from "bun:test";
import type { StatementResult } from "#gateway/session/result-collector.ts";
import { batchFault, refusalOf } from "#gateway/session/statement-rules.ts";
import { StatementClassifier, loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { PARAMETERS_MAX } from "#pool/wire/statement-messages.ts";

beforeAll(loadStatementParser);

const classifier = new StatementClassifier();
const classify = (text: string) => classifier.classify(text);

function refuse(text: string, isBatch: boolean): string | undefined {
  return refusalOf(classify, { text, params: [] }, isBatch)?.code;
}

describe("before anything is sent", () => {
  test("transaction control is refused in a batch and allowed alone", () => {
    for (const text of [
      "begin",
      "COMMIT",
      "rollback",
      "commit and chain",
      "prepare transaction 'x'",
    ]) {
      expect(refuse(text, true)).toBe("2D000");
      expect(refuse(text, false)).toBeUndefined();
    }
  });

  test("savepoints, and texts that only PostgreSQL can judge, pass in a batch", () => {
    for (const text of [
      "savepoint a",
      "rollback to a",
      "release a",
      "selec 1",
      "select 1; select 2",
    ]) {
      expect(refuse(text, true)).toBeUndefined();
    }
  });

  test("COPY of the client's is refused, COPY of the server's is not ours to refuse", () => {
    expect(refuse("copy t from stdin", false)).toBe("0A000");
    expect(refuse("copy t to stdout", true)).toBe("0A000");
    expect(refuse("copy t to '/tmp/x'", false)).toBeUndefined();
  });

  test("a NUL or a lone surrogate is refused in a text and in a parameter", () => {
    const bad = ["a\0b", "\ud800"];
    for (const value of bad) {
      expect(refuse(value, false)).toBe("22021");
      const statement = { text: "select $1", params: [null, value] };
      expect(refusalOf(classify, statement, false)?.code).toBe("22021");
    }
    expect(refuse("select '😀'", false)).toBeUndefined();
  });

  test("parameters are counted on both sides of their limit", () => {
    const withParams = (length: number) =>
      refusalOf(classify, { text: "select 1", params: Array.from({ length }, () => null) }, false)
        ?.code;

    expect(withParams(PARAMETERS_MAX)).toBeUndefined();
    expect(withParams(PARAMETERS_MAX + 1)).toBe("08P01");
  });

  test("a text alone is classified only if it may be a COPY", () => {
    const classified: string[] = [];
    const watched = (text: string) => {
      classified.push(text);
      return classify(text);
    };

    for (const text of ["select 1", "CoPy t from stdin", "select 'copy'"]) {
      refusalOf(watched, { text, params: [] }, false);
    }

    expect(classified).toEqual(["CoPy t from stdin", "select 'copy'"]);
  });

  test("no message repeats what the caller sent", () => {
    const secret = "hunter2";
    for (const text of [
      `copy ${secret} from stdin`,
      `${secret}\0`,
      `prepare transaction '${secret}'`,
    ]) {
      const error = refusalOf(classify, { text, params: [secret] }, true);

      expect(error).toBeDefined();
      expect(JSON.stringify(error)).not.toContain(secret);
    }
  });
});

describe("after a batch", () => {
  const result = (command: string): StatementResult => ({ command, rowCount: null });
  const faultOf = (texts: readonly string[], tags: readonly string[]) =>
    batchFault(
      classify,
      texts.map((text) => ({ text, params: [] })),
      tags.map(result),
    )?.code;

  test("COMMIT at its end is success", () => {
    expect(faultOf(["select 1"], ["START", "SELECT", "COMMIT"])).toBeUndefined();
  });

  test("ROLLBACK at its end without an error is one", () => {
    expect(faultOf(["select 1"], ["START", "SELECT", "ROLLBACK"])).toBe("40000");
  });

  test("a statement whose tag shows that it has ended the transaction is an error", () => {
    expect(faultOf(["x"], ["START", "COMMIT", "COMMIT"])).toBe("2D000");
  });

  test("the tag of ROLLBACK TO SAVEPOINT is no end of the transaction", () => {
    expect(faultOf(["rollback to a"], ["START", "ROLLBACK", "COMMIT"])).toBeUndefined();
  });
});
