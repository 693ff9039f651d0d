// The prepared statements of one client session, by the client's own names: they follow it from server to server.
import type { StatementClass } from "../sql/statement-class.ts";
import type { RegisteredStatement, StatementRegistry } from "./statement-registry.ts";

/** A statement the client has parsed. Compared by identity. */
export interface ClientStatement {
  readonly name: string;
  readonly class: StatementClass;
  /** The Parse message from the query text on; undefined for one too large to keep, which lives on one server only. */
  readonly tail: Uint8Array | undefined;
  /** Set for named ones that may be shared between clients. */
  readonly registered: RegisteredStatement | undefined;
  /** The name on the server of a statement that is not shared. */
  readonly ownServerName: Uint8Array | undefined;
}

interface Named {
  readonly statement: ClientStatement;
  /** What `mark` had counted when it was parsed. */
  readonly mark: number;
}

/**
 * Changed when a message is read, ahead of the server's answer, since the next message of the pipeline may depend on it; set right
 * again when the answer is an error or the message is skipped.
 */
export class ClientStatements {
  readonly #registry: StatementRegistry;
  /** Most clients never name one: the map is made with the first. */
  #named: Map<string, Named> | undefined;
  /** Raised with each message that may drop all statements: it leaves alone what was parsed behind it. */
  #mark = 0;
  #unnamed: ClientStatement | undefined;

  constructor(registry: StatementRegistry) {
    this.#registry = registry;
  }

  get(name: string): ClientStatement | undefined {
    return name === "" ? this.#unnamed : this.#named?.get(name)?.statement;
  }

  get count(): number {
    return this.#named?.size ?? 0;
  }

  setUnnamed(statement: ClientStatement | undefined): void {
    this.#unnamed = statement;
  }

  /** The name must be free. */
  add(statement: ClientStatement): void {
    this.#named ??= new Map();
    this.#named.set(statement.name, { statement, mark: this.#mark });
  }

  /** Makes a named statement that servers share under one name. */
  share(name: string, statementClass: StatementClass, tail: Uint8Array): ClientStatement {
    const registered = this.#registry.acquire(tail);
    return {
      name,
      class: statementClass,
      tail: registered.tail,
      registered,
      ownServerName: undefined,
    };
  }

  /** The statement is forgotten if the name still means it. */
  remove(statement: ClientStatement): void {
    if (statement.name === "") {
      if (this.#unnamed === statement) this.#unnamed = undefined;
      return;
    }
    if (this.#named?.get(statement.name)?.statement !== statement) return;
    this.#named.delete(statement.name);
    if (statement.registered !== undefined) this.#registry.release(statement.registered);
  }

  /** A message was read that may drop all statements, if it is carried out. */
  mark(): void {
    this.#mark++;
  }

  /** The server has dropped all statements: those are gone that were parsed before the latest message that may do so. */
  dropped(): void {
    for (const { statement, mark } of this.#named?.values() ?? []) {
      if (mark < this.#mark) this.remove(statement);
    }
  }

  /** A Close was skipped: the name means the statement again, unless it was taken meanwhile. */
  restore(statement: ClientStatement): void {
    if (statement.name === "") {
      this.#unnamed ??= statement;
      return;
    }
    if (this.#named?.has(statement.name) === true) return;
    if (statement.registered !== undefined && statement.tail !== undefined) {
      this.add(this.share(statement.name, statement.class, statement.tail));
    } else {
      this.add(statement);
    }
  }

  /** The session ends. */
  clear(): void {
    this.#unnamed = undefined;
    if (this.#named === undefined) return;
    for (const { statement } of this.#named.values()) {
      if (statement.registered !== undefined) this.#registry.release(statement.registered);
    }
    this.#named = undefined;
  }
}
