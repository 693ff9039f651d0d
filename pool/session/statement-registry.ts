// One name for one statement text and its parameter types, whichever clients prepared it and under whatever names.
import { type ByteHash, hashBytes } from "../wire/byte-hash.ts";
import { isRange } from "../wire/message-types.ts";

export interface RegisteredStatement {
  readonly id: number;
  /** The name on every server, ASCII. */
  readonly serverName: Uint8Array;
  /** The Parse message from the query text on: text, NUL, parameter types. */
  readonly tail: Uint8Array;
}

interface Entry {
  readonly statement: RegisteredStatement;
  /** What else the text's meaning depends on. */
  readonly context: string;
  readonly hash: number;
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
  /** By the hash of the text and its types; nearly always one. */
  readonly #byHash = new Map<number, Entry[]>();
  readonly #byId = new Map<number, Entry>();
  /** Entries without clients, the longest unused first. */
  readonly #unused = new Set<Entry>();
  #unusedBytes = 0;
  #lastId = 0;
  readonly #unusedMax: number;
  readonly #hash: ByteHash;

  constructor(unusedEntriesMax: number = UNUSED_ENTRIES_MAX, hash: ByteHash = hashBytes) {
    this.#unusedMax = unusedEntriesMax;
    this.#hash = hash;
  }

  get size(): number {
    return this.#byId.size;
  }

  /**
   * Counts one client of the Parse message's tail in `source` from `start` to `end`; `release` takes it back. The tail is copied when it
   * is new. `context`: what else the text's meaning depends on, so that equal texts of different contexts are different statements.
   */
  acquire(
    source: Uint8Array,
    start: number = 0,
    end: number = source.length,
    context: string = "",
  ): RegisteredStatement {
    const hash = this.#hash(source, start, end);
    const entry =
      this.#byHash
        .get(hash)
        ?.find(
          (one) => one.context === context && isRange(one.statement.tail, source, start, end),
        ) ?? this.#add(source.slice(start, end), context, hash);
    if (this.#unused.delete(entry)) this.#unusedBytes -= end - start;
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
      this.#remove(oldest);
    }
  }

  #add(tail: Uint8Array, context: string, hash: number): Entry {
    const id = ++this.#lastId;
    const serverName = new TextEncoder().encode(`${SERVER_NAME_PREFIX}${id}`);
    const entry = { statement: { id, serverName, tail }, context, hash, clients: 0 };
    const same = this.#byHash.get(hash);
    if (same === undefined) this.#byHash.set(hash, [entry]);
    else same.push(entry);
    this.#byId.set(id, entry);
    return entry;
  }

  #remove(entry: Entry): void {
    this.#byId.delete(entry.statement.id);
    const others = this.#byHash.get(entry.hash)?.filter((one) => one !== entry) ?? [];
    if (others.length === 0) this.#byHash.delete(entry.hash);
    else this.#byHash.set(entry.hash, others);
  }
}
