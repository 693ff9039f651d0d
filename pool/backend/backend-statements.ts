// Which of our prepared statements exist on one backend connection, kept exact through skipped and failed messages.
import type { RegisteredStatement } from "../session/statement-registry.ts";

/**
 * `present`: a message sent now finds it, or is skipped together with the Parse that makes it. `doubtful`: it depends on answers
 * still to come, or its plan is stale; a Close and a Parse sent now settle it.
 */
export type Presence = "present" | "absent" | "doubtful";

interface Entry {
  readonly statement: RegisteredStatement;
  /** As of the answers so far. */
  exists: boolean;
  /** Its result type has changed: the server refuses every Bind to it until it is parsed again. */
  isStale: boolean;
  /** Parses and Closes sent and not answered. */
  inFlight: number;
  /** Number of the segment that the latest of them is in, and what it leads to. */
  segment: number;
  willExist: boolean;
  /** Orders entries by their latest use. */
  lastUse: number;
}

/**
 * A segment is what ends in a Sync: its messages are skipped together from a failing one on ("Extended Query"), so within one of them
 * what was sent may be relied on, and across two it may not.
 */
export class BackendStatements {
  readonly #named = new Map<number, Entry>();
  #uses = 0;
  /** Whose text the server's unnamed statement holds; any object that tells texts apart. */
  #unnamed: object | undefined;
  #isUnnamedPending = false;
  #unnamedSegment = 0;
  /** Counts what was done to the unnamed statement: an answer to anything but the latest says nothing any more. */
  #unnamedChange = 0;

  /** Entries, those included that are about to appear or to go. */
  get size(): number {
    return this.#named.size;
  }

  /** Where the statement stands as seen from segment number `segment`; a use makes it the most recent. */
  presence(statement: RegisteredStatement, segment: number): Presence {
    const entry = this.#named.get(statement.id);
    if (entry === undefined) return "absent";
    entry.lastUse = ++this.#uses;
    if (entry.inFlight === 0) {
      if (entry.isStale) return "doubtful";
      return entry.exists ? "present" : "absent";
    }
    if (entry.segment !== segment) return "doubtful";
    return entry.willExist ? "present" : "absent";
  }

  parseSent(statement: RegisteredStatement, segment: number): void {
    this.#sent(statement, segment, true);
  }

  closeSent(statement: RegisteredStatement, segment: number): void {
    this.#sent(statement, segment, false);
  }

  /** ParseComplete, or (`isDone` false) an error or nothing, as it was skipped. */
  parseAnswered(statement: RegisteredStatement, isDone: boolean): void {
    this.#answered(statement, isDone ? true : undefined);
  }

  /** CloseComplete, or (`isDone` false) nothing, as it was skipped. */
  closeAnswered(statement: RegisteredStatement, isDone: boolean): void {
    this.#answered(statement, isDone ? false : undefined);
  }

  /** The least recently used one that can be closed, if more than `max` are there. */
  excess(max: number): RegisteredStatement | undefined {
    let count = 0;
    let oldest: Entry | undefined;
    for (const entry of this.#named.values()) {
      if (entry.inFlight > 0 ? entry.willExist : entry.exists) count++;
      // One that is in flight may be needed by messages already sent.
      const isOlder = oldest === undefined || entry.lastUse < oldest.lastUse;
      if (entry.inFlight === 0 && isOlder) oldest = entry;
    }
    return count > max ? oldest?.statement : undefined;
  }

  /** A Bind was refused since a result type has changed, and it is not known whose: all are to be parsed again. */
  markStale(): void {
    for (const entry of this.#named.values()) entry.isStale = true;
  }

  /** DISCARD ALL or DEALLOCATE ALL was done. */
  clear(): void {
    for (const entry of this.#named.values()) {
      entry.exists = false;
      entry.isStale = false;
      if (entry.inFlight === 0) this.#named.delete(entry.statement.id);
    }
    this.unnamedDropped();
  }

  /** True when a message sent now finds `statement` as the unnamed one, or is skipped together with its Parse. */
  holdsUnnamed(statement: object, segment: number): boolean {
    if (this.#unnamed !== statement) return false;
    return !this.#isUnnamedPending || this.#unnamedSegment === segment;
  }

  /** An unnamed Parse was sent; what it returns is for `unnamedAnswered`. */
  unnamedSent(statement: object, segment: number): number {
    this.#unnamed = statement;
    this.#isUnnamedPending = true;
    this.#unnamedSegment = segment;
    return ++this.#unnamedChange;
  }

  unnamedAnswered(change: number, isDone: boolean): void {
    if (change !== this.#unnamedChange) return;
    this.#isUnnamedPending = false;
    if (!isDone) this.#unnamed = undefined;
  }

  /** A simple Query or a Close was sent, which end it ("Extended Query"). */
  unnamedDropped(): void {
    this.#unnamed = undefined;
    this.#isUnnamedPending = false;
    this.#unnamedChange++;
  }

  #sent(statement: RegisteredStatement, segment: number, willExist: boolean): void {
    let entry = this.#named.get(statement.id);
    if (entry === undefined) {
      entry = {
        statement,
        exists: false,
        isStale: false,
        inFlight: 0,
        segment,
        willExist,
        lastUse: ++this.#uses,
      };
      this.#named.set(statement.id, entry);
    }
    entry.inFlight++;
    entry.segment = segment;
    entry.willExist = willExist;
  }

  #answered(statement: RegisteredStatement, exists: boolean | undefined): void {
    const entry = this.#named.get(statement.id);
    if (entry === undefined) return;
    entry.inFlight--;
    if (exists !== undefined) {
      entry.exists = exists;
      entry.isStale = false;
    }
    if (entry.inFlight === 0 && !entry.exists) this.#named.delete(statement.id);
  }
}
