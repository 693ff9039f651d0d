// The prepared statements of one client session, by the client's own names: they follow it from server to server.
import type { StatementClass } from "../sql/statement-class.ts";
import { isRange } from "../wire/message-types.ts";
import { NO_PARAMETERS, type ParameterSet, parseContext } from "./startup-parameters.ts";
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
  /** What `#drops` had counted when it was parsed. */
  readonly drops: number;
}

const NEVER = -1;

/** Many more than any driver's cache holds. */
const NAMED_COUNT_MAX = 10_000;
/** Texts of one client together; each is kept once, whoever else has it, but nobody else may. */
const NAMED_BYTES_MAX = 16_777_216;

/** Statements that nobody else may share so far, to tell them apart: their session's settings may change between two of them. */
let isolatedStatements = 0;

/**
 * Changed when a message is read, ahead of the server's answer, since the next message of the segment depends on it; set right again
 * when the answer is an error or the message is skipped. Messages of one segment are skipped together, so within it that is exact; a
 * message of a later one that depends on an unanswered change has to wait: see `isUncertain`.
 */
export class ClientStatements {
  readonly #registry: StatementRegistry;
  readonly #parameters: ParameterSet;
  /** What the texts' meaning depends on, worked out with the first that is named: only those who agree on it share statements. */
  #context: string | undefined;
  #isIsolated = false;
  /** Most clients never name one: the map is made with the first. */
  #named: Map<string, Named> | undefined;
  /** Of the named ones' texts. */
  #namedBytes = 0;
  #unnamed: ClientStatement | undefined;
  /** Counts messages that may drop all statements: each leaves alone what was parsed behind it. */
  #drops = 0;
  /** Counts segments as they are read. */
  #segment = 0;
  // Segments of the unanswered changes: of each named statement (the latest, which is read only once those before are answered), of the
  // unnamed one (the latest, which takes the place of those before), and the first and the latest in which all may be dropped.
  #changedIn: Map<string, number> | undefined;
  #droppedIn = NEVER;
  #unnamedChangedIn = NEVER;
  #latestDropIn = NEVER;
  /** Named ones whose first change to be undone has been: it says what the name meant before. */
  #undone: Set<string> | undefined;

  constructor(registry: StatementRegistry, parameters: ParameterSet = NO_PARAMETERS) {
    this.#registry = registry;
    this.#parameters = parameters;
  }

  /** The session has made settings of its own: what it parses from here on means what it says to nobody else. */
  isolate(): void {
    this.#isIsolated = true;
  }

  get(name: string): ClientStatement | undefined {
    return name === "" ? this.#unnamed : this.#named?.get(name)?.statement;
  }

  /** No further statement may be named before one is closed. */
  get isFull(): boolean {
    const count = this.#named?.size ?? 0;
    return count >= NAMED_COUNT_MAX || this.#namedBytes >= NAMED_BYTES_MAX;
  }

  /** What the name means depends on an answer to a message of an earlier segment. */
  isUncertain(name: string): boolean {
    if (name !== "" && this.#droppedIn === NEVER && (this.#changedIn?.size ?? 0) === 0)
      return false;
    if (name === "") return this.#isEarlier(this.#unnamedChangedIn);
    return this.#isEarlier(this.#changedIn?.get(name) ?? NEVER) || this.#isEarlier(this.#droppedIn);
  }

  /** A message that is answered with ReadyForQuery was read. */
  endSegment(): void {
    this.#segment++;
  }

  /** All segments before the one being read have been answered. */
  settle(): void {
    const changedIn = this.#changedIn;
    if (changedIn !== undefined && changedIn.size > 0) {
      for (const [name, segment] of changedIn) {
        if (segment !== this.#segment) changedIn.delete(name);
      }
    }
    if (this.#unnamedChangedIn !== this.#segment) this.#unnamedChangedIn = NEVER;
    this.#droppedIn = this.#latestDropIn === this.#segment ? this.#segment : NEVER;
    this.#undone = undefined;
  }

  setUnnamed(statement: ClientStatement | undefined): void {
    if (this.#unnamed === statement) return;
    this.#unnamed = statement;
    this.#unnamedChangedIn = this.#segment;
  }

  /**
   * The unnamed statement, if it is what the Parse message in `chunk` from the query text on makes again: drivers that do not name their
   * statements parse the same text over and over. Not the statement for the new Parse: each has its own answer.
   */
  repeated(chunk: Uint8Array, start: number, end: number): ClientStatement | undefined {
    const tail = this.#unnamed?.tail;
    return tail !== undefined && isRange(tail, chunk, start, end) ? this.#unnamed : undefined;
  }

  /** The name must be free. */
  add(statement: ClientStatement): void {
    this.#named ??= new Map();
    this.#named.set(statement.name, { statement, drops: this.#drops });
    this.#namedBytes += statement.tail?.length ?? 0;
    this.#changed(statement.name);
  }

  /**
   * Makes a named statement that servers share under one name with all who agree on what its text means; the Parse message's tail is in
   * `source` from `start` to `end`.
   */
  share(
    name: string,
    statementClass: StatementClass,
    source: Uint8Array,
    start: number = 0,
    end: number = source.length,
  ): ClientStatement {
    this.#context ??= parseContext(this.#parameters);
    const context = this.#isIsolated ? `isolated ${++isolatedStatements}` : this.#context;
    const registered = this.#registry.acquire(source, start, end, context);
    return {
      name,
      class: statementClass,
      tail: registered.tail,
      registered,
      ownServerName: undefined,
    };
  }

  /** A Close was read. */
  remove(statement: ClientStatement): void {
    if (statement.name === "") {
      if (this.#unnamed === statement) this.setUnnamed(undefined);
    } else if (this.#named?.get(statement.name)?.statement === statement) {
      this.#named.delete(statement.name);
      this.#namedBytes -= statement.tail?.length ?? 0;
      this.#changed(statement.name);
      if (statement.registered !== undefined) this.#registry.release(statement.registered);
    }
  }

  /**
   * The Parse failed or was skipped: the name is free again. What is undone is told in the order of the messages, and is all that was
   * changed from there on. An unnamed one that is skipped leaves none, though the server still has the one before: nobody relies on it.
   */
  undoParse(statement: ClientStatement): void {
    this.#undo(statement, undefined);
  }

  /** The Close was skipped: the name means the statement again. */
  undoClose(statement: ClientStatement): void {
    this.#undo(statement, statement);
  }

  /** A message was read that may drop all statements, if it is carried out. */
  mayDrop(): void {
    this.#drops++;
    this.#latestDropIn = this.#segment;
    if (this.#droppedIn === NEVER) this.#droppedIn = this.#segment;
  }

  /** The server has dropped all named statements: those are gone that were parsed before the latest message that may do so. */
  dropped(): void {
    for (const { statement, drops } of this.#named?.values() ?? []) {
      if (drops < this.#drops) this.remove(statement);
    }
  }

  #undo(changed: ClientStatement, before: ClientStatement | undefined): void {
    const { name } = changed;
    if (name === "") {
      if (before === undefined) this.remove(changed);
      return;
    }
    if (this.#undone?.has(name) === true) return;
    const now = this.get(name);
    if (now !== undefined) this.remove(now);
    if (before !== undefined) {
      const { registered, tail } = before;
      const isShared = registered !== undefined && tail !== undefined;
      this.add(isShared ? this.share(name, before.class, tail) : before);
    }
    this.#undone ??= new Set();
    this.#undone.add(name);
  }

  /** The session ends. */
  clear(): void {
    this.#unnamed = undefined;
    if (this.#named === undefined) return;
    for (const { statement } of this.#named.values()) {
      if (statement.registered !== undefined) this.#registry.release(statement.registered);
    }
    this.#named = undefined;
    this.#namedBytes = 0;
  }

  #isEarlier(segment: number): boolean {
    return segment !== NEVER && segment !== this.#segment;
  }

  #changed(name: string): void {
    this.#changedIn ??= new Map();
    this.#changedIn.set(name, this.#segment);
    this.#undone?.delete(name);
  }
}
