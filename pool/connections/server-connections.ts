// One user's connections to one server: the counts, and the index of the FREE ones. Decides nothing, calls nobody.
import type { Server } from "../routing/server.ts";
import type { PooledConnection } from "./pooled-connection.ts";

/**
 *   opening ──► free ◄──► used ──► lost (closed by itself while on lease; waits to be given back)
 *                │ ▲       │
 *                ▼ │       ▼
 *             rekeying ──► closed (left the pool)
 */
export type ConnectionState = "free" | "used" | "rekeying" | "lost" | "closed";

/** The pool's side of one connection. */
export interface PoolEntry<C extends PooledConnection> {
  readonly connection: C;
  readonly home: ServerConnections<C>;
  state: ConnectionState;
  stack: KeyStack<C>;
  /** Clock milliseconds. */
  freedAt: number;
  /** Orders FREE connections that were freed within one tick of the clock. */
  freedOrder: number;
  /** Its profile's generation was replaced: closed when it is given back. */
  isRetired: boolean;
}

/** Connections of one match key; exists while it has members, so there are never more of them than connections. */
export interface KeyStack<C extends PooledConnection> {
  readonly key: string;
  readonly family: string;
  /** FREE, the coldest first: the last is handed out, so that the first grow old and the janitor ends them. */
  readonly free: PoolEntry<C>[];
  /** FREE, USED, lost and rekeying. */
  members: number;
}

export interface OpenFailure {
  readonly error: Error;
  /** Clock milliseconds; no open is tried before. */
  readonly retryAt: number;
}

export class ServerConnections<C extends PooledConnection> {
  readonly server: Server;
  used = 0;
  /** Opens and changes of principal in flight. */
  opening = 0;
  /** The latest open failed, and none has succeeded since. */
  failure: OpenFailure | undefined;

  readonly #stacks = new Map<string, KeyStack<C>>();
  #free = 0;
  #freedCount = 0;

  constructor(server: Server) {
    this.server = server;
  }

  get free(): number {
    return this.#free;
  }

  /** What `default_pool_size` limits. */
  get total(): number {
    return this.#free + this.used + this.opening;
  }

  /** After a failure: one open at a time, and not before its retry time, until one succeeds. */
  mayOpen(now: number): boolean {
    return this.failure === undefined || (now >= this.failure.retryAt && this.opening === 0);
  }

  /** A new connection's entry: on nobody's lease, not FREE, not counted yet. */
  createEntry(connection: C, key: string, family: string, isRetired: boolean): PoolEntry<C> {
    return {
      connection,
      home: this,
      state: "used",
      stack: this.#join(key, family),
      freedAt: 0,
      freedOrder: 0,
      isRetired,
    };
  }

  /** The entry is not FREE at that time. */
  changeKey(entry: PoolEntry<C>, key: string, family: string): void {
    this.leave(entry);
    entry.stack = this.#join(key, family);
  }

  /** The entry is not FREE and leaves the pool. */
  leave(entry: PoolEntry<C>): void {
    entry.stack.members -= 1;
    if (entry.stack.members === 0) {
      this.#stacks.delete(entry.stack.key);
    }
  }

  putFree(entry: PoolEntry<C>, now: number): void {
    this.#freedCount += 1;
    this.#free += 1;
    entry.state = "free";
    entry.freedAt = now;
    entry.freedOrder = this.#freedCount;
    entry.stack.free.push(entry);
  }

  /** The warmest FREE connection of exactly this key that is open; the caller gives it its next state. */
  takeFree(key: string): PoolEntry<C> | undefined {
    const stack = this.#stacks.get(key);
    if (stack === undefined) {
      return undefined;
    }
    for (let index = stack.free.length - 1; index >= 0; index -= 1) {
      const entry = stack.free[index];
      if (entry?.connection.isOpen === true) {
        this.removeFree(entry, index);
        return entry;
      }
    }
    return undefined;
  }

  /** The coldest of a family that is open: its principal is the least likely to come back. */
  takeFreeOfFamily(family: string): PoolEntry<C> | undefined {
    return this.#takeColdest((entry) => entry.stack.family === family && entry.connection.isOpen);
  }

  /** The least recently used FREE connection of any key, also one that is closing. */
  takeColdest(): PoolEntry<C> | undefined {
    return this.#takeColdest(() => true);
  }

  /** `index` is the entry's place in its stack where the caller knows it. */
  removeFree(entry: PoolEntry<C>, index: number = entry.stack.free.indexOf(entry)): void {
    const { free } = entry.stack;
    if (index === free.length - 1) {
      free.pop();
    } else {
      free.splice(index, 1);
    }
    this.#free -= 1;
  }

  /** A copy: the caller may remove while it iterates. */
  freeEntries(): PoolEntry<C>[] {
    return [...this.#stacks.values()].flatMap((stack) => stack.free);
  }

  // A scan of at most default_pool_size entries, always followed by a round trip to the server.
  #takeColdest(isWanted: (entry: PoolEntry<C>) => boolean): PoolEntry<C> | undefined {
    if (this.#free === 0) {
      return undefined;
    }
    let coldest: PoolEntry<C> | undefined;
    for (const stack of this.#stacks.values()) {
      const candidate = stack.free.find(isWanted);
      if (candidate !== undefined && candidate.freedOrder < (coldest?.freedOrder ?? Infinity)) {
        coldest = candidate;
      }
    }
    if (coldest !== undefined) {
      this.removeFree(coldest);
    }
    return coldest;
  }

  #join(key: string, family: string): KeyStack<C> {
    let stack = this.#stacks.get(key);
    if (stack === undefined) {
      stack = { key, family, free: [], members: 0 };
      this.#stacks.set(key, stack);
    }
    stack.members += 1;
    return stack;
  }
}
