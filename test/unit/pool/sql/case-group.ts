// The shape of the table of statements, the classes most used in it, and the schema that it is about.
import type { StatementClass } from "#pool/sql/statement-class.ts";

/** Made before the statements of the table run on a real server. */
export const CASE_SCHEMA: readonly string[] = [
  "CREATE TABLE accounts (id int PRIMARY KEY, parent int, name text, total numeric, tags text[], data jsonb, doc xml, created_at timestamptz DEFAULT now())",
  "CREATE TABLE orders (id int PRIMARY KEY, account int REFERENCES accounts DEFERRABLE, amount numeric, placed_at date)",
  "CREATE SEQUENCE invoice_numbers",
  "CREATE FUNCTION price(int) RETURNS numeric LANGUAGE sql AS 'SELECT $1 * 1.5'",
  "CREATE PROCEDURE tidy() LANGUAGE sql AS 'DELETE FROM orders WHERE false'",
  "INSERT INTO accounts (id, name, total, tags, data) VALUES (1, 'a', 10, '{x,y}', '{\"k\": [1, 2]}')",
  "INSERT INTO orders VALUES (1, 1, 5, '2026-01-01')",
];

export interface CaseGroup {
  readonly name: string;
  readonly expected: StatementClass;
  readonly texts: readonly string[];
}

/** The class of an ordinary write. */
export const WRITE: StatementClass = {
  access: "primary",
  pin: undefined,
  hasTransactionControl: false,
  statementCount: 1,
  copy: undefined,
  chains: false,
  mayWrite: true,
  transactionCommand: undefined,
};
export const READ: StatementClass = { ...WRITE, access: "read", mayWrite: false };
/** Can't write, but is about one server or session. */
export const LOCAL: StatementClass = { ...WRITE, mayWrite: false };
/** The text itself is beyond judgement. */
export const UNREADABLE: StatementClass = {
  ...WRITE,
  pin: "unparsed",
  hasTransactionControl: true,
  chains: true,
};
