// What the gateway refuses about the statements of an HTTP request before anything is sent, and what it checks about a batch after it ran.
import type { StatementClass } from "#pool/sql/statement-class.ts";
import { PARAMETERS_MAX } from "#pool/wire/statement-messages.ts";
import { type StatementResult, copyError } from "./result-collector.ts";
import { type ServerError, ownError } from "./server-error.ts";

/** Each is a Parse, a Bind, a Describe and an Execute in the relay's plan, which is to hold 8,192 answers. */
export const BATCH_STATEMENTS_MAX = 1_000;

type Classify = (text: string) => StatementClass;

interface Statement {
  readonly text: string;
  readonly params: readonly (string | null)[];
}

/** Tags of the commands that begin or end a transaction. */
const TRANSACTION_TAGS: ReadonlySet<string> = new Set([
  "BEGIN",
  "START",
  "COMMIT",
  "ROLLBACK",
  "PREPARE",
]);

/** A text without the keyword is no COPY, and classifying it would only be done twice. */
const COPY = /copy/i;

/** Of one statement, by itself or in a batch. */
export function refusalOf(
  classify: Classify,
  { text, params }: Statement,
  isBatch: boolean,
): ServerError | undefined {
  const fault = textFault(text, params);
  if (fault !== undefined) return fault;
  if (!isBatch && !COPY.test(text)) return undefined;
  const statementClass = classify(text);
  if (statementClass.copy !== undefined) return copyError();
  return isBatch && endsTransaction(statementClass) ? transactionControl() : undefined;
}

export function tooManyStatements(): ServerError {
  return ownError("54000", `a batch has at most ${BATCH_STATEMENTS_MAX} statements`);
}

/**
 * Undefined when the answers to [START TRANSACTION, statements…, COMMIT] say that the transaction has held them all. A text that could
 * not be read beforehand may have ended it; then its tag betrays it.
 */
export function batchFault(
  classify: Classify,
  statements: readonly Statement[],
  results: readonly StatementResult[],
): ServerError | undefined {
  const hasEnded = statements.some(({ text }, index) => {
    const { command = "" } = results[index + 1] ?? {};
    return TRANSACTION_TAGS.has(command) && classify(text).transactionCommand !== "savepoint";
  });
  if (hasEnded) {
    return ownError("2D000", "a statement of the batch has ended its transaction", {
      detail: "What came before it may have been committed.",
    });
  }
  if (results.at(-1)?.command === "COMMIT") return undefined;
  return ownError("40000", "the transaction of the batch was rolled back");
}

function textFault(text: string, params: readonly (string | null)[]): ServerError | undefined {
  if (params.length > PARAMETERS_MAX) {
    return ownError("08P01", `a statement has at most ${PARAMETERS_MAX} parameters`);
  }
  if (isEncodable(text) && params.every((value) => value === null || isEncodable(value))) {
    return undefined;
  }
  return ownError("22021", 'invalid byte sequence for encoding "UTF8"', {
    detail: "A statement or parameter holds a NUL or half of a surrogate pair.",
  });
}

/** A NUL ends a string in the protocol; a lone surrogate would be sent as another character. */
function isEncodable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

/** A text that PostgreSQL's grammar refuses counts as all things; PostgreSQL is to say what is wrong with it. */
function endsTransaction(statementClass: StatementClass): boolean {
  const { hasTransactionControl, transactionCommand, pin } = statementClass;
  const isUnread = pin === "unparsed" || pin === "too_long";
  return hasTransactionControl && !isUnread && transactionCommand !== "savepoint";
}

function transactionControl(): ServerError {
  return ownError("2D000", "a statement of a batch can't begin or end a transaction", {
    hint: "A batch is one transaction; its options say of which kind.",
  });
}
