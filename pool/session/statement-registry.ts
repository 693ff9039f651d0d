// One name for one statement text and its parameter types, whichever clients prepared it and under whatever names.
import { latin1 } from "../wire/frontend-messages.ts";

export interface RegisteredStatement {
  readonly id: number;
  /** The name on every server, ASCII. */
  readonly serverName: Uint8Array;
  /** The Parse message from the query text on: text, NUL, parameter types. */
  readonly tail: Uint8Array;
}

interface Entry {
  readonly statement: RegisteredStatement;
  readonly key: string;
  /** Client sessions that have it prepared. */
  clients: number;
}

/** Prefix of the names we give; a client's own statement names never reach a server. */
export const SERVER_NAME_PREFIX = "wg_";

/** Texts kept although no client has them prepared now, since the next connection of the same program will ask for them again. */
const UNUSED_ENTRIES_MAX = 10_000;
/** Of those texts together: 10,000 usual ones fit, and as many of 64 KB do not. */
const UNUSED_BYTES_MAX = 16_777_216;

export class StatementRegistry {
  readonly #byKey = new Map<string, Entry>();
  readonly #byId = new Map<number, Entry>();
  /** Entries without clients, the longest unused first. */
  readonly #unused = new Set<Entry>();
  #unusedBytes = 0;
  #lastId = 0;
  readonly #unusedMax: number;

  constructor(unusedEntriesMax: number = UNUSED_ENTRIES_MAX) {
    this.#unusedMax = unusedEntriesMax;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /**
   * Counts one client; `release` takes it back. `tail` is copied when it is new. `context`: what else the text's meaning depends on, so
   * that equal texts of different contexts are different statements.
   */
  acquire(tail: Uint8Array, context: string = ""): RegisteredStatement {
    const key = `${context}\0${latin1(tail, 0, tail.length)}`;
    let entry = this.#byKey.get(key);
    if (entry === undefined) {
      const id = ++this.#lastId;
      const serverName = new TextEncoder().encode(`${SERVER_NAME_PREFIX}${id}`);
      entry = { statement: { id, serverName, tail: tail.slice() }, key, clients: 0 };
      this.#byKey.set(key, entry);
      this.#byId.set(id, entry);
    }
    if (this.#unused.delete(entry)) this.#unusedBytes -= tail.length;
    entry.clients++;
    return entry.statement;
  }

  release(statement: RegisteredStatement): void {
    const entry = this.#byId.get(statement.id);
    if (entry === undefined) return;
    entry.clients--;
    if (entry.clients > 0) return;
    this.#unused.add(entry);
    this.#unusedBytes += entry.statement.tail.length;
    for (const oldest of this.#unused) {
      if (this.#unused.size <= this.#unusedMax && this.#unusedBytes <= UNUSED_BYTES_MAX) return;
      this.#unused.delete(oldest);
      this.#unusedBytes -= oldest.statement.tail.length;
      this.#byKey.delete(oldest.key);
      this.#byId.delete(oldest.statement.id);
    }
  }
}
