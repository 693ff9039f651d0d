import { describe, expect, test } from "bun:test";
import { addTransactionHeaders, readSqlRequest } from "#gateway/http/sql-request.ts";

const DRIVER = { "Neon-Raw-Text-Output": "true", "Neon-Array-Mode": "true" };

function read(body: unknown, headers: Record<string, string> = DRIVER) {
  const result = readSqlRequest(new Headers(headers), JSON.stringify(body));
  return result.ok ? result.value : result.error.code;
}

const RAW_ARRAYS = { isArray: true, isRawText: true };

describe("a request to /sql", () => {
  test("of the serverless driver is one statement with raw text in arrays", () => {
    expect(read({ query: "select $1", params: ["1"] })).toEqual({
      statements: [{ text: "select $1", params: ["1"], format: RAW_ARRAYS }],
      transaction: undefined,
    });
  });

  test("without headers asks for decoded objects, and its own arrayMode wins over the header", () => {
    const formatOf = (body: object, headers: Record<string, string>) => {
      const request = read({ query: "select", ...body }, headers);
      return typeof request === "string" ? request : request.statements[0]?.format;
    };

    expect(formatOf({}, {})).toEqual({ isArray: false, isRawText: false });
    expect(formatOf({ arrayMode: true }, {})).toEqual({ isArray: true, isRawText: false });
    expect(formatOf({ arrayMode: false }, DRIVER)).toEqual({ isArray: false, isRawText: true });
    expect(formatOf({}, { "Neon-Array-Mode": "True" })).toEqual({
      isArray: false,
      isRawText: false,
    });
  });

  test("with queries is a transaction, whatever else is in it", () => {
    const headers = {
      ...DRIVER,
      "Neon-Batch-Isolation-Level": "RepeatableRead",
      "Neon-Batch-Read-Only": "true",
      "Neon-Batch-Deferrable": "false",
    };

    expect(
      read({ queries: [{ query: "a" }, { query: "b", params: [] }], query: 1 }, headers),
    ).toEqual({
      statements: [
        { text: "a", params: [], format: RAW_ARRAYS },
        { text: "b", params: [], format: RAW_ARRAYS },
      ],
      transaction: { isolation: "REPEATABLE READ", isReadOnly: true, isDeferrable: false },
    });
    expect(read({ queries: [] })).toEqual({
      statements: [],
      transaction: { isolation: undefined, isReadOnly: false, isDeferrable: false },
    });
  });

  test("of another shape is refused with 08P01", () => {
    const bodies = [
      {},
      { query: 1 },
      { query: "a", params: {} },
      { query: "a", arrayMode: "true" },
      { queries: {} },
      { queries: ["a"] },
      { queries: [{ query: "a" }, { params: [] }] },
    ];
    for (const body of bodies) expect(read(body)).toBe("08P01");
  });

  test("with an unknown isolation level is refused with 22023", () => {
    const headers = { "Neon-Batch-Isolation-Level": "repeatable read" };

    expect(read({ queries: [] }, headers)).toBe("22023");
    // A single statement has no transaction of ours.
    expect(typeof read({ query: "a" }, headers)).toBe("object");
  });
});

test("the answer repeats what was asked of the transaction", () => {
  const request = new Headers({ "Neon-Batch-Isolation-Level": "Serializable" });
  const options = { isolation: "SERIALIZABLE", isReadOnly: true, isDeferrable: true } as const;
  const answer = {};
  const plain = {};

  addTransactionHeaders(answer, request, options);
  addTransactionHeaders(plain, new Headers(), {
    isolation: undefined,
    isReadOnly: false,
    isDeferrable: false,
  });

  expect(answer).toEqual({
    "Neon-Batch-Isolation-Level": "Serializable",
    "Neon-Batch-Read-Only": "true",
    "Neon-Batch-Deferrable": "true",
  });
  expect(plain).toEqual({});
});
