// The callable surface that a database handle and a session share.

import type { Result, Row } from "./answer.ts";
import type { Statement } from "./fragment.ts";
import { Fragment } from "./fragment.ts";
import type { Param } from "./params.ts";
import { encodeParam } from "./params.ts";
import { Query } from "./query.ts";

export interface QueryOptions {
  /**
   * Aborts the query: the gateway cancels it in PostgreSQL. The query rejects with the signal's
   * reason.
   */
  readonly signal?: AbortSignal;
}

/** What may stand in `${…}`: a parameter, or a fragment or template query to take in. */
export type TemplateValue = Param | Fragment | Query;

/** Runs SQL. `R` is the caller's claim about the rows; nothing checks it. */
export interface Runner {
  /**
   * A query from a template; each value becomes a parameter, never SQL text.
   *
   * @throws TypeError at once for a value that cannot be a parameter.
   *
   * @example
   * const users = await db<{ id: number }>`select id from users where name = ${name}`;
   */
  <R extends object = Row>(strings: TemplateStringsArray, ...values: TemplateValue[]): Query<R>;

  /**
   * A piece of SQL for other templates.
   *
   * @throws TypeError at once for a value that cannot be a parameter.
   *
   * @example
   * const active = db.sql`deleted_at is null and tenant = ${tenant}`;
   * await db`select * from users where ${active}`;
   */
  sql(strings: TemplateStringsArray, ...values: TemplateValue[]): Fragment;

  /**
   * A query from a text with $1 … $n.
   *
   * @throws TypeError at once for a value that cannot be a parameter.
   *
   * @example
   * const { rowCount } = await db.query("delete from users where id = $1", [7]).result();
   */
  query<R extends object = Row>(
    text: string,
    params?: readonly Param[],
    options?: QueryOptions,
  ): Query<R>;
}

/** Sends one statement and reads its answer. */
export type Execute = (statement: Statement, signal: AbortSignal | undefined) => Promise<Result>;

export function createRunner(execute: Execute): Runner {
  const run = async <R extends object>(
    statement: Statement,
    signal: AbortSignal | undefined,
  ): Promise<Result<R>> => {
    const result = await execute(statement, signal);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- R is the caller's claim about the SQL
    return { ...result, rows: result.rows as R[] };
  };

  const template = <R extends object = Row>(
    strings: TemplateStringsArray,
    ...values: TemplateValue[]
  ): Query<R> => {
    const fragment = new Fragment(strings, values);
    return new Query<R>(fragment, () => run<R>(fragment.toStatement(), undefined));
  };

  const query = <R extends object = Row>(
    text: string,
    params: readonly Param[] = [],
    options: QueryOptions = {},
  ): Query<R> => {
    const statement = { text, params: params.map(encodeParam) };
    return new Query<R>(null, () => run<R>(statement, options.signal));
  };

  const sql = (strings: TemplateStringsArray, ...values: TemplateValue[]): Fragment =>
    new Fragment(strings, values);

  return Object.assign(template, { query, sql });
}
