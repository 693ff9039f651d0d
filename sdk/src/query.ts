// A statement that runs once, when somebody asks for its result.

import type { Result, Row } from "./answer.ts";
import { RowCountError } from "./errors.ts";
import type { Fragment } from "./fragment.ts";
import { standFor } from "./fragment.ts";

/**
 * Nothing is sent before the first await, then(), result(), one() or maybe(); all of these share
 * one run. A template query that is interpolated into another template becomes part of it and runs
 * with that one only.
 */
export class Query<R extends object = Row> implements PromiseLike<R[]> {
  readonly #run: () => Promise<Result<R>>;
  #result: Promise<Result<R>> | null = null;

  /** `fragment` is null for a text with its own $n. */
  constructor(fragment: Fragment | null, run: () => Promise<Result<R>>) {
    this.#run = run;
    standFor(this, fragment);
  }

  /**
   * Rows together with their count, columns, command and read-after-write token.
   *
   * @throws DatabaseError, ConnectionError, TimeoutError, UnexpectedResponseError, QueueFullError;
   * as do all methods below.
   */
  result(): Promise<Result<R>> {
    this.#result ??= this.#run();
    return this.#result;
  }

  /**
   * The only row.
   *
   * @throws RowCountError when there are none or several.
   */
  async one(): Promise<R> {
    const { rows } = await this.result();
    const [row] = rows;
    if (row === undefined || rows.length > 1) {
      throw new RowCountError("exactly one row", rows.length);
    }
    return row;
  }

  /**
   * The only row, or null when there is none.
   *
   * @throws RowCountError when there are several.
   */
  async maybe(): Promise<R | null> {
    const { rows } = await this.result();
    if (rows.length > 1) {
      throw new RowCountError("at most one row", rows.length);
    }
    return rows[0] ?? null;
  }

  /** The rows; this is what `await` calls. */
  // oxlint-disable-next-line unicorn/no-thenable -- a query that can be awaited is the purpose of the class
  then<T = R[], E = never>(
    onfulfilled?: ((rows: R[]) => T | PromiseLike<T>) | null,
    onrejected?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<T | E> {
    return this.result()
      .then(({ rows }) => rows)
      .then(onfulfilled, onrejected);
  }
}
