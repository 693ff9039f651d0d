// Understands a request to /sql: its body, single or batch, and the headers that shape the transaction and the answer.
import type {
  IsolationLevel,
  StatementRequest,
  TransactionOptions,
} from "../session/query-runner.ts";
import type { AnswerHeaders } from "./http-answer.ts";
import { parameterText } from "./parameter-text.ts";
import { type BodyResult, failure, isRecord, parseBody } from "./request-body.ts";

export interface SqlRequest {
  readonly statements: readonly StatementRequest[];
  /** Given for a batch. */
  readonly transaction: TransactionOptions | undefined;
}

const ISOLATION_LEVELS: ReadonlyMap<string, IsolationLevel> = new Map([
  ["ReadUncommitted", "READ UNCOMMITTED"],
  ["ReadCommitted", "READ COMMITTED"],
  ["RepeatableRead", "REPEATABLE READ"],
  ["Serializable", "SERIALIZABLE"],
]);

/** `{query, params?, arrayMode?}` or `{queries: [the same…]}`; the shape decides, and other keys are ignored. */
export function readSqlRequest(headers: Headers, text: string): BodyResult<SqlRequest> {
  return parseBody<SqlRequest>(text, (body) => {
    const isBatch = "queries" in body;
    const queries = isBatch ? body["queries"] : [body];
    if (!Array.isArray(queries)) return failure("08P01", '"queries" is not an array');
    const statements: StatementRequest[] = [];
    for (const query of queries) {
      const statement = readStatement(query, headers);
      if (!statement.ok) return statement;
      statements.push(statement.value);
    }
    if (!isBatch) return { ok: true, value: { statements, transaction: undefined } };
    const transaction = readTransaction(headers);
    return transaction.ok
      ? { ok: true, value: { statements, transaction: transaction.value } }
      : transaction;
  });
}

function readStatement(query: unknown, headers: Headers): BodyResult<StatementRequest> {
  if (!isRecord(query)) return failure("08P01", "a query is not a JSON object");
  const { query: text, params = [], arrayMode = isTrue(headers, "neon-array-mode") } = query;
  if (typeof text !== "string") return failure("08P01", '"query" is not a string');
  if (!Array.isArray(params)) return failure("08P01", '"params" is not an array');
  if (typeof arrayMode !== "boolean") return failure("08P01", '"arrayMode" is not a boolean');
  const isRawText = isTrue(headers, "neon-raw-text-output");
  return {
    ok: true,
    value: { text, params: params.map(parameterText), format: { isArray: arrayMode, isRawText } },
  };
}

function readTransaction(headers: Headers): BodyResult<TransactionOptions> {
  const level = headers.get(ISOLATION_HEADER);
  const isolation = level === null ? undefined : ISOLATION_LEVELS.get(level);
  if (level !== null && isolation === undefined) {
    return failure("22023", `invalid value for the header ${ISOLATION_HEADER}`);
  }
  return {
    ok: true,
    value: {
      isolation,
      isReadOnly: isTrue(headers, READ_ONLY_HEADER),
      isDeferrable: isTrue(headers, DEFERRABLE_HEADER),
    },
  };
}

const ISOLATION_HEADER = "Neon-Batch-Isolation-Level";
const READ_ONLY_HEADER = "Neon-Batch-Read-Only";
const DEFERRABLE_HEADER = "Neon-Batch-Deferrable";

/** Adds what the answer repeats of the transaction's kind. */
export function addTransactionHeaders(
  answer: AnswerHeaders,
  request: Headers,
  { isReadOnly, isDeferrable }: TransactionOptions,
): void {
  const level = request.get(ISOLATION_HEADER);
  if (level !== null) answer[ISOLATION_HEADER] = level;
  if (isReadOnly) answer[READ_ONLY_HEADER] = "true";
  if (isDeferrable) answer[DEFERRABLE_HEADER] = "true";
}

/** Only these exact bytes switch something on. */
function isTrue(headers: Headers, name: string): boolean {
  return headers.get(name) === "true";
}
