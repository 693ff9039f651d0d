// Statement texts about transactions, cursors and COPY, as a person judged them.
import type { StatementClass } from "#pool/sql/statement-class.ts";
import { type CaseGroup, LOCAL, WRITE } from "./case-group.ts";

const control = (
  transactionCommand: StatementClass["transactionCommand"],
  more: Partial<StatementClass> = {},
): StatementClass => ({ ...LOCAL, hasTransactionControl: true, transactionCommand, ...more });

export const TRANSACTIONS: readonly CaseGroup[] = [
  {
    name: "BEGIN",
    expected: control("begin"),
    texts: [
      "BEGIN",
      "begin work;",
      "START TRANSACTION",
      "BEGIN ISOLATION LEVEL REPEATABLE READ",
      "BEGIN READ WRITE",
      "START TRANSACTION READ ONLY, READ WRITE",
      "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE",
      "BEGIN DEFERRABLE",
    ],
  },
  {
    name: "BEGIN READ ONLY",
    expected: control("begin_read_only"),
    texts: [
      "BEGIN READ ONLY",
      "BEGIN TRANSACTION READ ONLY;",
      "start transaction read only",
      "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    ],
  },
  {
    name: "COMMIT",
    expected: control("commit", { mayWrite: true }),
    texts: ["COMMIT", "COMMIT WORK", "END", "END TRANSACTION;", "COMMIT AND NO CHAIN"],
  },
  {
    name: "ROLLBACK",
    expected: control("rollback"),
    texts: ["ROLLBACK", "ABORT", "/* x */ rollback transaction"],
  },
  {
    name: "savepoints",
    expected: control("savepoint"),
    texts: [
      "SAVEPOINT s",
      "RELEASE s",
      "RELEASE SAVEPOINT s",
      "ROLLBACK TO s",
      "ROLLBACK TO SAVEPOINT s",
    ],
  },
  {
    name: "two-phase commit",
    expected: control("other", { mayWrite: true }),
    texts: ["PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'", "ROLLBACK PREPARED 'x'"],
  },
  {
    name: "COMMIT AND CHAIN",
    expected: control("commit", { mayWrite: true, chains: true }),
    texts: ["COMMIT AND CHAIN", "end transaction and chain"],
  },
  {
    name: "ROLLBACK AND CHAIN",
    expected: control("rollback", { chains: true }),
    texts: ["ROLLBACK AND CHAIN", "ABORT AND CHAIN"],
  },
  {
    name: "transactions around statements",
    expected: { ...WRITE, hasTransactionControl: true, statementCount: 3 },
    texts: [
      "BEGIN; INSERT INTO orders (id) VALUES (1); COMMIT",
      "BEGIN; SELECT 1; COMMIT",
      "BEGIN READ ONLY; SELECT 1; END",
    ],
  },
  {
    name: "transactions that write nothing",
    expected: { ...LOCAL, hasTransactionControl: true, statementCount: 2 },
    texts: ["BEGIN; SELECT 1", "SELECT 1; ROLLBACK", "BEGIN; SET LOCAL a.b = 'c'"],
  },
  {
    name: "cursors inside a transaction",
    expected: LOCAL,
    texts: [
      "DECLARE c CURSOR FOR SELECT * FROM accounts",
      "DECLARE c SCROLL CURSOR WITHOUT HOLD FOR SELECT 1",
    ],
  },
  {
    name: "use of a cursor, of which nothing is known",
    expected: WRITE,
    texts: ["FETCH 10 FROM c", "FETCH ALL IN c", "MOVE FORWARD 5 FROM c", "CLOSE c", "CLOSE ALL"],
  },
  {
    name: "COPY from the client",
    expected: { ...WRITE, copy: "in" },
    texts: [
      "COPY accounts FROM STDIN",
      "COPY accounts (id, name) FROM STDIN WITH (FORMAT csv)",
      "copy accounts from stdout",
    ],
  },
  {
    name: "COPY on the server",
    expected: WRITE,
    texts: [
      "COPY accounts FROM '/tmp/file'",
      "COPY accounts TO '/tmp/file'",
      "COPY (SELECT 1) TO PROGRAM 'cat'",
      "COPY accounts FROM PROGRAM 'cat'",
    ],
  },
  {
    name: "statements outside a transaction block, and of other versions",
    expected: WRITE,
    texts: [
      "VACUUM accounts",
      "CREATE INDEX CONCURRENTLY ON accounts (name)",
      "CREATE DATABASE other",
      "ALTER SYSTEM SET work_mem = '8MB'",
      "CHECKPOINT",
      "REFRESH MATERIALIZED VIEW seen",
      "WAIT FOR LSN '0/306EE20'",
      "wait for lsn '0/306EE20' with (timeout '100ms')",
    ],
  },
];
