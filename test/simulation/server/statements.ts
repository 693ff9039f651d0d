// The SQL that simulated servers understand: what the simulation's clients send, and what the gateway says itself.
import { IDENTITY_QUERY, SAMPLE_QUERY } from "#pool/consistency/server-sample.ts";

export type SimStatement =
  | { readonly kind: "read" | "write"; readonly tag: string | undefined; readonly key: number }
  | { readonly kind: "big"; readonly tag: string; readonly sizeBytes: number }
  | { readonly kind: "lock"; readonly tag: string; readonly lock: number }
  | { readonly kind: "begin"; readonly isReadOnly: boolean }
  | { readonly kind: "commit" | "rollback" }
  | { readonly kind: "set"; readonly value: string; readonly isQuery: boolean }
  | { readonly kind: "show" | "reset_all" | "discard_all" | "division" | "reseed" }
  | { readonly kind: "sample" | "identity" | "probe" }
  | { readonly kind: "unknown"; readonly text: string };

/** `tag` is the client's number, a dot and the number of its request. */
export const sql = {
  read: (tag: string, key: number): string => `SELECT '${tag}' AS tag, v FROM kv WHERE k = ${key}`,
  write: (tag: string, key: number): string =>
    `UPDATE kv SET v = v + 1 WHERE k = ${key} RETURNING '${tag}' AS tag, v`,
  big: (tag: string, sizeBytes: number): string =>
    `SELECT '${tag}' AS tag, repeat('x', ${sizeBytes}) AS v`,
  lock: (tag: string, lock: number): string =>
    `SELECT '${tag}' AS tag, pg_advisory_lock(${lock}) AS v`,
  setName: (value: string): string => `SET application_name TO '${value}'`,
  showName: "SHOW application_name",
  division: "SELECT 1/0",
  parameterRead: "SELECT $1::text AS tag, v FROM kv WHERE k = $2::int",
  parameterWrite: "UPDATE kv SET v = v + 1 WHERE k = $2::int RETURNING $1::text AS tag, v",
} as const;

/** Set by a parameter. */
const FROM_BIND = -1;

const FIXED: ReadonlyMap<string, SimStatement> = new Map<string, SimStatement>([
  [sql.parameterRead, { kind: "read", tag: undefined, key: FROM_BIND }],
  [sql.parameterWrite, { kind: "write", tag: undefined, key: FROM_BIND }],
  [sql.showName, { kind: "show" }],
  [sql.division, { kind: "division" }],
  ["BEGIN", { kind: "begin", isReadOnly: false }],
  ["BEGIN READ ONLY", { kind: "begin", isReadOnly: true }],
  ["COMMIT", { kind: "commit" }],
  ["ROLLBACK", { kind: "rollback" }],
  ["RESET ALL", { kind: "reset_all" }],
  ["DISCARD ALL", { kind: "discard_all" }],
  [SAMPLE_QUERY, { kind: "sample" }],
  [IDENTITY_QUERY, { kind: "identity" }],
  ["select pg_catalog.pg_current_wal_insert_lsn()", { kind: "probe" }],
]);

const READ = /^SELECT '([^']+)' AS tag, v FROM kv WHERE k = (\d+)$/;
const WRITE = /^UPDATE kv SET v = v \+ 1 WHERE k = (\d+) RETURNING '([^']+)' AS tag, v$/;
const BIG = /^SELECT '([^']+)' AS tag, repeat\('x', (\d+)\) AS v$/;
const LOCK = /^SELECT '([^']+)' AS tag, pg_advisory_lock\((\d+)\) AS v$/;
const SET = /^SET application_name TO '([^']*)'$/;
const SET_CONFIG = /^SELECT pg_catalog\.set_config\('application_name', E'([^']*)', false\)$/;
const RESEED = /^SELECT pg_catalog\.setseed\(/;

/** The statements of one text: several only where the gateway puts parameters in force. */
export function readStatements(text: string): readonly SimStatement[] {
  const whole = FIXED.get(text);
  if (whole !== undefined) return [whole];
  if (text.trim() === "") return [];
  return text.includes("; ") ? text.split("; ").map(readOne) : [readOne(text)];
}

function readOne(text: string): SimStatement {
  const fixed = FIXED.get(text);
  if (fixed !== undefined) return fixed;
  let match = READ.exec(text);
  if (match !== null) return { kind: "read", tag: match[1], key: Number(match[2]) };
  match = WRITE.exec(text);
  if (match !== null) return { kind: "write", tag: match[2], key: Number(match[1]) };
  match = BIG.exec(text);
  if (match !== null) return { kind: "big", tag: match[1] ?? "", sizeBytes: Number(match[2]) };
  match = LOCK.exec(text);
  if (match !== null) return { kind: "lock", tag: match[1] ?? "", lock: Number(match[2]) };
  match = SET.exec(text);
  if (match !== null) return { kind: "set", value: match[1] ?? "", isQuery: false };
  match = SET_CONFIG.exec(text);
  if (match !== null) return { kind: "set", value: match[1] ?? "", isQuery: true };
  return RESEED.test(text) ? { kind: "reseed" } : { kind: "unknown", text };
}

const TAGGED_COLUMNS = ["tag", "v"];
const SETTING_COLUMNS = ["set_config"];
const NAME_COLUMNS = ["application_name"];
const VALUE_COLUMNS = ["v"];

/** Columns of its answer; undefined for a statement that returns no rows. */
export function columnsOf(statement: SimStatement): readonly string[] | undefined {
  switch (statement.kind) {
    case "read":
    case "write":
    case "big":
    case "lock":
      return TAGGED_COLUMNS;
    case "set":
      return statement.isQuery ? SETTING_COLUMNS : undefined;
    case "show":
      return NAME_COLUMNS;
    case "division":
    case "probe":
    case "reseed":
      return VALUE_COLUMNS;
    case "begin":
    case "commit":
    case "rollback":
    case "discard_all":
    case "reset_all":
    case "sample":
    case "identity":
    case "unknown":
      break;
  }
  return undefined;
}
