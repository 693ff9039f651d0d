// The list of one user's connections and what each is doing; the only place that changes a connection's state and the counts.
import type { Server } from "../routing/server.ts";
import type { PooledConnection } from "./pooled-connection.ts";
import { type PoolEntry, ServerConnections } from "./server-connections.ts";

export class ConnectionLedger<C extends PooledConnection> {
  readonly #homes = new Map<Server, ServerConnections<C>>();
  readonly #entries = new Map<C, PoolEntry<C>>();

  homeOf(server: Server): ServerConnections<C> {
    let home = this.#homes.get(server);
    if (home === undefined) {
      home = new ServerConnections<C>(server);
      this.#homes.set(server, home);
    }
    return home;
  }

  /** Copies: the caller may change the ledger while it iterates. */
  homes(): ServerConnections<C>[] {
    return [...this.#homes.values()];
  }

  entries(): PoolEntry<C>[] {
    return [...this.#entries.values()];
  }

  /** A new connection: nobody holds it yet. `onClosed` is told while it is in the ledger. */
  add(entry: PoolEntry<C>, onClosed: () => void): void {
    this.#entries.set(entry.connection, entry);
    entry.connection.onClosed = onClosed;
  }

  lend(entry: PoolEntry<C>): void {
    entry.state = "used";
    entry.home.used += 1;
    entry.home.server.leased += 1;
  }

  /**
   * Returns an entry that nobody holds, or undefined if its connection was lost during the lease.
   * @throws Error if the connection is not on lease: a caller's bug, which would give it two holders.
   */
  endLease(connection: C): PoolEntry<C> | undefined {
    const entry = this.#entries.get(connection);
    if (entry === undefined || (entry.state !== "used" && entry.state !== "lost")) {
      throw new Error("a connection was given back that is not on lease");
    }
    entry.home.server.leased -= 1;
    if (entry.state === "lost") {
      this.forget(entry);
      return undefined;
    }
    entry.home.used -= 1;
    return entry;
  }

  /** The connection is gone and its slot free, but the lease lasts until its holder has noticed. */
  lose(entry: PoolEntry<C>): void {
    entry.state = "lost";
    entry.home.used -= 1;
    entry.connection.onClosed = undefined;
  }

  /** The entry is not FREE and nobody holds it. The caller closes the connection, after all changes of state. */
  forget(entry: PoolEntry<C>): void {
    entry.state = "closed";
    // Closing calls back at once, which must not deliver to waiters in the middle of an operation.
    entry.connection.onClosed = undefined;
    this.#entries.delete(entry.connection);
    entry.home.leave(entry);
  }

  /** A reload makes new server objects: those that nobody uses any more are not kept. */
  forgetHome(home: ServerConnections<C>): void {
    this.#homes.delete(home.server);
  }
}
