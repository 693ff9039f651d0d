// Carries out the statements of one simulated session: transactions, locks, settings, and what a row says.
import { commandComplete, dataRow } from "./answer-frames.ts";
import type { SimCluster } from "./sim-cluster.ts";
import { type SimServer, KEY_COUNT } from "./sim-server.ts";
import type { SimStatement } from "./statements.ts";
import { BLOCK_BYTES, SEGMENT_BYTES, formatPosition } from "./write-ahead-log.ts";
import { SYSTEM_IDENTIFIER } from "./identity.ts";

const SLOW_SHARE = 0.03;
const SLOW_MS_MAX = 15;
/** PostgreSQL's deadlock_timeout; here whoever waited that long is taken for part of one. */
const DEADLOCK_MS = 1_000;
const RECORD_BYTES_MAX = 200;
const VERSION = "180001";
const SAMPLE_COLUMNS = ["r", "l", "p", "s"];
const IDENTITY_COLUMNS = [...SAMPLE_COLUMNS, "i", "t", "f", "b", "w", "v"];

export class SessionError extends Error {
  readonly sqlState: string;

  constructor(sqlState: string, message: string) {
    super(message);
    this.sqlState = sqlState;
  }
}

/** What a session would pass on to whoever gets it next. */
export interface SessionState {
  readonly applicationName: string;
  /** The client that took an advisory lock that is held. */
  readonly lockOwner: number | undefined;
  /** The client that has run something in the transaction block that is open. */
  readonly blockOwner: number | undefined;
}

type Administrative = "discard_all" | "reset_all" | "probe" | "sample" | "identity" | "reseed";

/** Whatever stands in a statement's way. */
type Obstacle =
  | { readonly kind: "slow"; readonly ms: number }
  | { readonly kind: "lock"; readonly ms: number; whenFree(callback: () => void): void };

export class StatementRunner {
  readonly #cluster: SimCluster;
  readonly #server: SimServer;
  readonly #session: number;
  #block: "none" | "open" | "failed" = "none";
  #blockOwner: number | undefined;
  /** Keys written by the transaction that is open, with their new stamps. */
  readonly #changes = new Map<number, number>();
  #defaultName = "";
  #name: string | undefined;
  /** What a rollback brings back: settings belong to their transaction until it commits. */
  #savedName: { readonly name: string | undefined } | undefined;
  #lockOwner: number | undefined;
  #isReadOnly = false;
  /** The transaction that no BEGIN has begun has carried out a statement. */
  #hasRun = false;
  #hasRowLocks = false;

  constructor(cluster: SimCluster, server: SimServer, session: number) {
    this.#cluster = cluster;
    this.#server = server;
    this.#session = session;
  }

  get status(): "I" | "T" | "E" {
    if (this.#block === "none") return "I";
    return this.#block === "open" ? "T" : "E";
  }

  get state(): SessionState {
    return {
      applicationName: this.applicationName,
      lockOwner: this.#lockOwner,
      blockOwner: this.#blockOwner,
    };
  }

  get applicationName(): string {
    return this.#name ?? this.#defaultName;
  }

  /** A text that nobody here sends, or the product's and changed: it stands in the trace. */
  unknown(text: string): SessionError {
    this.#note(`does not know: ${text}`);
    return new SessionError("42601", "syntax error");
  }

  login(packet: Uint8Array): void {
    const words = new TextDecoder().decode(packet.subarray(8)).split("\0");
    const at = words.indexOf("application_name");
    if (at >= 0) this.#defaultName = words[at + 1] ?? "";
  }

  /** @throws SessionError 25P02 in a failed block, for whatever does not end it. */
  requireUsable(statement: SimStatement | undefined): void {
    if (this.#block !== "failed") return;
    if (statement?.kind === "commit" || statement?.kind === "rollback") return;
    throw new SessionError("25P02", "current transaction is aborted");
  }

  obstacle(statement: SimStatement, values: readonly string[]): Obstacle | undefined {
    const { random } = this.#cluster;
    if (statement.kind !== "unknown") this.requireUsable(statement);
    if (statement.kind === "write") {
      if (!this.#server.isPrimary || this.#isReadOnly) {
        throw new SessionError("25006", "cannot execute UPDATE in a read-only transaction");
      }
      const lock = `row ${keyOf(statement, values)}`;
      const taken = this.#cluster.locks.take(this.#server, lock, this.#session);
      if (!taken) return this.#waitFor(lock);
      this.#hasRowLocks = true;
    }
    if (statement.kind === "lock") {
      const lock = `advisory ${statement.lock}`;
      const taken = this.#cluster.locks.take(this.#server, lock, this.#session);
      if (!taken) return this.#waitFor(lock);
    }
    if (!random.chance(SLOW_SHARE) || !("tag" in statement)) return undefined;
    return { kind: "slow", ms: random.next() * SLOW_MS_MAX };
  }

  /** The answer to one statement, from its rows on. */
  run(statement: SimStatement, values: readonly string[]): Uint8Array[] {
    const answer = this.#answer(statement, values);
    const { kind } = statement;
    this.#hasRun = kind !== "commit" && kind !== "rollback" && kind !== "discard_all";
    return answer;
  }

  #answer(statement: SimStatement, values: readonly string[]): Uint8Array[] {
    switch (statement.kind) {
      case "read":
        return this.#read(values[0] ?? statement.tag ?? "", keyOf(statement, values));
      case "write":
        return this.#write(values[0] ?? statement.tag ?? "", keyOf(statement, values));
      case "big":
        this.#tagged(statement.tag);
        return rows("SELECT 1", statement.tag, "x".repeat(statement.sizeBytes));
      case "lock":
        this.#lockOwner = this.#tagged(statement.tag);
        return rows("SELECT 1", statement.tag, "");
      case "begin":
        if (this.#block === "none") this.#isReadOnly = statement.isReadOnly;
        this.#block = "open";
        return [commandComplete("BEGIN")];
      case "commit":
      case "rollback":
        return [commandComplete(this.#endBlock(statement.kind === "commit"))];
      case "set":
        this.#setName(statement.value);
        return statement.isQuery ? rows("SELECT 1", statement.value) : [commandComplete("SET")];
      case "show":
        return rows("SHOW", this.state.applicationName);
      case "division":
        throw new SessionError("22012", "division by zero");
      case "unknown":
        throw this.unknown(statement.text);
      case "discard_all":
      case "reset_all":
      case "probe":
      case "sample":
      case "identity":
      case "reseed":
        break;
    }
    return this.#administer(statement.kind);
  }

  /** What the gateway's own questions are answered with; undefined for anything else. */
  internalColumns({ kind }: SimStatement): readonly string[] | undefined {
    if (kind === "sample") return SAMPLE_COLUMNS;
    return kind === "identity" ? IDENTITY_COLUMNS : undefined;
  }

  /** A Sync, or the end of a simple Query, ends the transaction that no BEGIN has begun. */
  endImplicit(): void {
    this.#hasRun = false;
    if (this.#block === "none") this.#commit();
  }

  /** An error: the implicit transaction is undone, and a block only waits for its end. */
  failed(): void {
    this.#hasRun = false;
    this.#undo();
    if (this.#block === "open") this.#block = "failed";
  }

  end(): void {
    this.#changes.clear();
    this.#cluster.locks.releaseAll(this.#server, this.#session);
  }

  #read(tag: string, key: number): Uint8Array[] {
    this.#tagged(tag);
    const stamp = this.#changes.get(key) ?? this.#server.stampOf(key);
    this.#note(`reads ${tag} k${key}=${stamp}`);
    return rows("SELECT 1", tag, String(stamp));
  }

  #write(tag: string, key: number): Uint8Array[] {
    this.#tagged(tag);
    const stamp = this.#cluster.nextStamp();
    this.#changes.set(key, stamp);
    this.#server.log(this.#recordBytes());
    this.#note(`writes ${tag} k${key}=${stamp}`);
    return rows("UPDATE 1", tag, String(stamp));
  }

  #administer(kind: Administrative): Uint8Array[] {
    switch (kind) {
      case "discard_all":
        if (this.#block !== "none" || this.#hasRun) {
          throw new SessionError("25001", "DISCARD ALL cannot run inside a transaction block");
        }
        this.#name = undefined;
        this.#savedName = undefined;
        this.#lockOwner = undefined;
        this.#cluster.locks.releaseAll(this.#server, this.#session);
        return [commandComplete("DISCARD ALL")];
      case "reset_all":
        this.#setName(undefined);
        return [commandComplete("RESET")];
      case "probe":
        if (!this.#server.isPrimary) throw new SessionError("55000", "recovery is in progress");
        return rows("SELECT 1", formatPosition(this.#server.lsn));
      case "sample":
        return rows("SELECT 1", ...this.#sample());
      case "identity":
        return rows("SELECT 1", ...this.#sample(), ...this.#identity());
      case "reseed":
        break;
    }
    return rows("SELECT 1", "");
  }

  #sample(): (string | null)[] {
    const { isPrimary, isReplayPaused, lsn, startedAt } = this.#server;
    const pause = isReplayPaused ? "paused" : "not paused";
    return [isPrimary ? "f" : "t", formatPosition(lsn), isPrimary ? null : pause, `s${startedAt}`];
  }

  #identity(): (string | null)[] {
    const { isPrimary, timeline } = this.#server;
    const file = `${timeline.id.toString(16).padStart(8, "0").toUpperCase()}${"0".repeat(16)}`;
    const id = String(SYSTEM_IDENTIFIER);
    return [
      id,
      isPrimary ? null : String(timeline.id),
      isPrimary ? file : null,
      String(BLOCK_BYTES),
      String(SEGMENT_BYTES),
      VERSION,
    ];
  }

  /** "ROLLBACK" for a failed block, as PostgreSQL says. */
  #endBlock(isCommit: boolean): string {
    const isDone = isCommit && this.#block !== "failed";
    this.#block = "none";
    this.#isReadOnly = false;
    this.#blockOwner = undefined;
    if (isDone) this.#commit();
    else this.#undo();
    return isDone ? "COMMIT" : "ROLLBACK";
  }

  #commit(): void {
    if (this.#changes.size > 0) {
      const changes = [...this.#changes].map(([key, stamp]) => ({ key, stamp }));
      this.#cluster.commit(this.#server, this.#recordBytes(), changes);
      this.#note(`commits ${changes.map(({ stamp }) => stamp).join(" ")}`);
    }
    this.#savedName = undefined;
    this.#undo();
  }

  #setName(name: string | undefined): void {
    this.#savedName ??= { name: this.#name };
    this.#name = name;
  }

  #undo(): void {
    this.#changes.clear();
    if (this.#savedName !== undefined) this.#name = this.#savedName.name;
    this.#savedName = undefined;
    if (!this.#hasRowLocks) return;
    this.#hasRowLocks = false;
    this.#cluster.locks.release(this.#server, this.#session, "row ");
  }

  #waitFor(lock: string): Obstacle {
    return {
      kind: "lock",
      ms: DEADLOCK_MS,
      whenFree: (callback) => this.#cluster.locks.whenFree(this.#server, lock, callback),
    };
  }

  #tagged(tag: string): number {
    this.#cluster.statementCount++;
    const client = Number(tag.slice(0, tag.indexOf(".")));
    this.#cluster.observe(client, this.state);
    if (this.#block === "open") this.#blockOwner = client;
    return client;
  }

  #recordBytes(): number {
    return 8 + this.#cluster.random.below(RECORD_BYTES_MAX);
  }

  #note(text: string): void {
    this.#cluster.trace.note(`${this.#server.name}/${this.#session} ${text}`);
  }
}

function keyOf(statement: SimStatement, values: readonly string[]): number {
  const key = "key" in statement && statement.key >= 0 ? statement.key : Number(values[1] ?? "");
  if (!(key >= 0 && key < KEY_COUNT)) throw new SessionError("22P02", "invalid key");
  return key;
}

function rows(tag: string, ...values: readonly (string | null)[]): Uint8Array[] {
  return [dataRow(values), commandComplete(tag)];
}
