// Deep expressions overflow the stack of the WebAssembly module. That leaves memory allocated in it,
// so the test counts on the module being replaced: 600 such texts fill the heap of a single one.
import { beforeAll, expect, test } from "bun:test";
import { loadStatementParser, statementParser } from "#pool/sql/statement-parser.ts";

beforeAll(loadStatementParser);

/** Compiled code gets deeper than interpreted code; this many levels are too many for both. */
const OVERFLOWING = `SELECT ${"1+".repeat(60_000)}1`;

/** Lets a replacement be made, which takes microtasks only. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a text is parsed into its statements", () => {
  const outcome = statementParser().parse("SELECT 1; COMMIT");

  expect(outcome.kind === "parsed" && outcome.statements.map(({ kind }) => kind)).toEqual([
    "SelectStmt",
    "TransactionStmt",
  ]);
});

test("a text that isn't SQL is refused, and costs nothing else", () => {
  expect(statementParser().parse("SELEC 1")).toEqual({ kind: "refused" });
  expect(statementParser().parse("SELECT 1").kind).toBe("parsed");
});

test("a text that overflows the parser fails, and the next one is parsed at once", () => {
  expect(statementParser().parse(OVERFLOWING)).toEqual({ kind: "failed" });
  expect(statementParser().parse("SELECT 1").kind).toBe("parsed");
});

test("overflows in a row run out of instances, which then are replaced", async () => {
  const parser = statementParser();
  await settle();
  const outcomes = [OVERFLOWING, OVERFLOWING, "SELECT 1"].map((text) => parser.parse(text).kind);
  await settle();

  expect(outcomes).toEqual(["failed", "failed", "failed"]);
  expect(parser.parse("SELECT 1").kind).toBe("parsed");
  expect(parser.parse(OVERFLOWING).kind).toBe("failed");
  expect(parser.parse("SELECT 1").kind).toBe("parsed");
});
