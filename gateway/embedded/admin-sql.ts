// Administrative statements on a local server: one connection per call, so that no pool outlives a crash.
import { SQL } from "bun";

export type SqlRow = Record<string, unknown>;

const CONNECT_TIMEOUT_S = 10;
/** Ends a statement that waits for a lock which a test forgot to release. */
const STATEMENT_TIMEOUT_MS = 60_000;

/** Opens one connection, hands it over, and closes it whatever happens. */
export async function withConnection<T>(url: string, work: (sql: SQL) => Promise<T>): Promise<T> {
  const sql = new SQL(url, {
    max: 1,
    connectionTimeout: CONNECT_TIMEOUT_S,
    connection: {
      application_name: "walgate-embedded",
      statement_timeout: STATEMENT_TIMEOUT_MS,
    },
  });
  try {
    return await work(sql);
  } finally {
    await sql.close({ timeout: 0 });
  }
}

/** Runs one statement, or several without parameters, and returns the rows of the last one. */
export function runSql(url: string, text: string): Promise<SqlRow[]> {
  return withConnection(url, async (sql) => {
    const answer: unknown = await sql.unsafe(text).simple();
    return lastRows(answer);
  });
}

/** Several statements answer with a list of lists, one with a list of rows. */
function lastRows(answer: unknown): SqlRow[] {
  if (!Array.isArray(answer)) return [];
  const last: unknown = answer.at(-1);
  return Array.isArray(last) ? lastRows(last) : answer.filter(isRow);
}

function isRow(value: unknown): value is SqlRow {
  return typeof value === "object" && value !== null;
}
