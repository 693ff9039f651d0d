// Reads one frontend message into an operation and keeps the client's view of its prepared statements in step.
import type { PoolMode, StartupProfile } from "../connections/startup-profile.ts";
import type { StatementClassifier, TextFacts } from "../sql/statement-classifier.ts";
import { type StatementClass, UNKNOWN_CLASS } from "../sql/statement-class.ts";
import { encodeErrorResponse } from "../wire/backend-messages.ts";
import {
  type ParseMessage,
  readBind,
  readNamedObject,
  readParse,
  readQuery,
} from "../wire/frontend-messages.ts";
import { latin1 } from "../wire/text.ts";
import {
  Frontend,
  HEADER_BYTES,
  concatBytes,
  readInt32,
  writeInt32,
} from "../wire/message-types.ts";
import type { ClientStatement, ClientStatements } from "./client-statements.ts";
import type { Operation } from "./operation.ts";
import { judged } from "./statement-mode.ts";
import { SERVER_NAME_PREFIX } from "./statement-registry.ts";

/** PostgreSQL's own wording for names that mean nothing here. */
function noSuchStatement(name: string): Operation {
  const message =
    name === ""
      ? "unnamed prepared statement does not exist"
      : `prepared statement "${shown(name)}" does not exist`;
  return failing("26000", message);
}

const TOO_MANY_STATEMENTS: Operation = {
  kind: "fail",
  error: encodeErrorResponse({
    severity: "ERROR",
    sqlState: "54000",
    message: "too many prepared statements in one session",
  }),
};

function alreadyExists(name: string): Operation {
  return failing("42P05", `prepared statement "${shown(name)}" already exists`);
}

/** Names are kept byte by byte; clients send UTF-8. */
function shown(name: string): string {
  return Buffer.from(name, "latin1").toString("utf8");
}

function failing(sqlState: string, message: string): Operation {
  return { kind: "fail", error: encodeErrorResponse({ severity: "ERROR", sqlState, message }) };
}

/** What PostgreSQL says to a message of a type that no client may send, before it closes. */
export function invalidMessageType(type: number): Uint8Array {
  const message = `invalid frontend message type ${type}`;
  return encodeErrorResponse({ severity: "FATAL", sqlState: "08P01", message });
}

/** Nothing is known of a text that was not read: it may write, and it may leave any state behind. */
const UNREAD_CLASS: StatementClass = Object.freeze({
  ...UNKNOWN_CLASS,
  pin: "too_long",
  hasTransactionControl: true,
});

/**
 * `wait`: what the message means depends on answers that are owed; to be read again when there are none. Nothing was changed.
 * `invalid`: no message of this type, or of this type and size, may come from a client.
 */
export type ReadResult = Operation | "wait" | "invalid";

/** Statements with a name of their own so far, over all clients. */
let ownStatements = 0;

export class OperationReader {
  readonly #classifier: StatementClassifier;
  readonly #statements: ClientStatements;
  readonly #poolMode: PoolMode;

  constructor(
    classifier: StatementClassifier,
    statements: ClientStatements,
    profile: StartupProfile,
  ) {
    this.#classifier = classifier;
    this.#statements = statements;
    this.#poolMode = profile.poolMode;
  }

  /** The message is whole; it lies in `chunk` from `start` to `end`. */
  read(type: number, chunk: Uint8Array, start: number, end: number): ReadResult {
    const result = this.#read(type, chunk, start, end);
    return typeof result === "string" ? result : judged(result, this.#poolMode);
  }

  /**
   * A message too large to keep: `prefix` is its beginning, the rest is sent on behind whatever the operation writes, or dropped when
   * it is one of ours.
   */
  readLarge(type: number, prefix: Uint8Array): ReadResult {
    const result = this.#readLarge(type, prefix);
    return typeof result === "string" ? result : judged(result, this.#poolMode);
  }

  #read(type: number, chunk: Uint8Array, start: number, end: number): ReadResult {
    switch (type) {
      case Frontend.QUERY:
        return this.#query(chunk, start, end);
      case Frontend.PARSE:
        return this.#parse(chunk, start, end);
      case Frontend.BIND:
        return this.#bind(chunk, start, end);
      case Frontend.DESCRIBE:
        return this.#describe(chunk, start, end);
      case Frontend.EXECUTE:
        return { kind: "execute", chunk, start, end };
      case Frontend.SYNC:
        this.#statements.endSegment();
        return { kind: "sync", chunk, start, end };
      case Frontend.FLUSH:
        return { kind: "flush", chunk, start, end };
      case Frontend.CLOSE:
        return this.#close(chunk, start, end);
      case Frontend.FUNCTION_CALL:
        return this.#functionCall(chunk, start, end);
      case Frontend.COPY_DATA:
        return { kind: "copy_data", chunk, start, end };
      case Frontend.COPY_DONE:
      case Frontend.COPY_FAIL:
        return { kind: "copy_end", chunk, start, end };
      default:
        return "invalid";
    }
  }

  #readLarge(type: number, prefix: Uint8Array): ReadResult {
    const end = prefix.length;
    switch (type) {
      case Frontend.QUERY:
        return this.#queryOf(prefix, 0, end, UNREAD_CLASS, false);
      case Frontend.PARSE:
        return this.#largeParse(prefix);
      case Frontend.BIND:
        return this.#bind(prefix, 0, end);
      case Frontend.FUNCTION_CALL:
        return this.#functionCall(prefix, 0, end);
      case Frontend.COPY_DATA:
        return { kind: "copy_data", chunk: prefix, start: 0, end };
      default:
        return "invalid";
    }
  }

  #functionCall(chunk: Uint8Array, start: number, end: number): Operation {
    this.#statements.isolate();
    this.#statements.endSegment();
    return { kind: "function_call", chunk, start, end };
  }

  /**
   * The text can't be kept, so it can't be prepared again elsewhere: the statement gets a name nobody else has, and its class pins the
   * session to its server.
   */
  #largeParse(prefix: Uint8Array): ReadResult {
    const nameEnd = prefix.indexOf(0, HEADER_BYTES);
    if (nameEnd < 0) return malformed();
    const name = latin1(prefix, HEADER_BYTES, nameEnd);
    const unkept = { name, class: UNREAD_CLASS, tail: undefined, registered: undefined };
    if (name === "") {
      const statement = { ...unkept, ownServerName: undefined };
      this.#statements.setUnnamed(statement);
      return { kind: "parse", chunk: prefix, start: 0, end: prefix.length, statement };
    }
    if (this.#statements.isUncertain(name)) return "wait";
    if (this.#statements.get(name) !== undefined) return alreadyExists(name);
    const ownServerName = new TextEncoder().encode(`${SERVER_NAME_PREFIX}own_${++ownStatements}`);
    const statement = { ...unkept, ownServerName };
    this.#statements.add(statement);
    const header = prefix.slice(0, HEADER_BYTES);
    writeInt32(header, 1, readInt32(prefix, 1) + ownServerName.length - (nameEnd - HEADER_BYTES));
    const chunk = concatBytes([header, ownServerName, prefix.subarray(nameEnd)]);
    return { kind: "parse", chunk, start: 0, end: chunk.length, statement };
  }

  #query(chunk: Uint8Array, start: number, end: number): Operation {
    const textEnd = readQuery(chunk, start, end);
    if (textEnd === undefined) return this.#queryOf(chunk, start, end, undefined, false);
    const facts = this.#classifier.read(chunk, start + HEADER_BYTES, textEnd);
    const resetsAll = facts.class.pin !== undefined && facts.resetsAll;
    const query = this.#queryOf(chunk, start, end, facts.class, resetsAll);
    this.#noteLocalSetting(facts);
    return query;
  }

  #queryOf(
    chunk: Uint8Array,
    start: number,
    end: number,
    statementClass: StatementClass | undefined,
    resetsAll: boolean,
  ): Operation {
    // A simple Query ends the unnamed statement ("Extended Query").
    this.#statements.setUnnamed(undefined);
    this.#notePin(statementClass);
    this.#statements.endSegment();
    return { kind: "query", chunk, start, end, class: statementClass, resetsAll };
  }

  /**
   * Something that pins may be about to run. DISCARD ALL and DEALLOCATE ALL do: what is parsed from here on outlives them. So does SET:
   * what is parsed from here on may mean something else than at others'.
   */
  #notePin(statementClass: StatementClass | undefined): void {
    if (statementClass?.pin === undefined) return;
    this.#statements.mayDrop();
    this.#statements.isolate();
  }

  /** SET LOCAL ends with its transaction, but what is parsed inside keeps what it meant there. */
  #noteLocalSetting(facts: TextFacts): void {
    if (facts.maySetLocally && facts.class.access !== "read") this.#statements.isolate();
  }

  #parse(chunk: Uint8Array, start: number, end: number): ReadResult {
    const message = readParse(chunk, start, end);
    if (message === undefined) return malformed();
    const { name, tailOffset, textEnd } = message;
    if (name === "") return this.#parseUnnamed(chunk, start, end, message);
    const facts = this.#classifier.read(chunk, tailOffset, textEnd);
    this.#noteLocalSetting(facts);
    if (this.#statements.isUncertain(name)) return "wait";
    if (this.#statements.get(name) !== undefined) return alreadyExists(name);
    if (this.#statements.isFull) return TOO_MANY_STATEMENTS;
    const statement = this.#statements.share(name, facts.class, chunk, tailOffset, end);
    this.#statements.add(statement);
    return { kind: "parse", chunk, start, end, statement };
  }

  #parseUnnamed(
    chunk: Uint8Array,
    start: number,
    end: number,
    { tailOffset, textEnd }: ParseMessage,
  ): Operation {
    let statement: ClientStatement;
    const repeated = this.#statements.repeated(chunk, tailOffset, end);
    if (repeated?.class.access === "read") {
      statement = { ...repeated };
    } else {
      const facts = this.#classifier.read(chunk, tailOffset, textEnd);
      this.#noteLocalSetting(facts);
      statement = {
        name: "",
        class: facts.class,
        // A copy: the chunk may be much larger and must not be kept alive.
        tail: repeated?.tail ?? chunk.slice(tailOffset, end),
        registered: undefined,
        ownServerName: undefined,
      };
    }
    this.#statements.setUnnamed(statement);
    return { kind: "parse", chunk, start, end, statement };
  }

  /** Also for the prefix of a large Bind. */
  #bind(chunk: Uint8Array, start: number, end: number): ReadResult {
    const message = readBind(chunk, start, end);
    if (message === undefined) return malformed();
    if (this.#statements.isUncertain(message.statement)) return "wait";
    const statement = this.#statements.get(message.statement);
    if (statement === undefined && !mayExistOnServer(message.statement)) {
      return noSuchStatement(message.statement);
    }
    this.#notePin(statement?.class);
    return { kind: "bind", chunk, start, end, message, statement };
  }

  #describe(chunk: Uint8Array, start: number, end: number): ReadResult {
    const object = readNamedObject(chunk, start, end);
    if (object === undefined) return malformed();
    if (object.kind === "portal") return { kind: "describe_portal", chunk, start, end };
    if (this.#statements.isUncertain(object.name)) return "wait";
    const statement = this.#statements.get(object.name);
    if (statement === undefined && !mayExistOnServer(object.name)) {
      return noSuchStatement(object.name);
    }
    return { kind: "describe_statement", chunk, start, end, statement };
  }

  #close(chunk: Uint8Array, start: number, end: number): ReadResult {
    const object = readNamedObject(chunk, start, end);
    if (object === undefined) return malformed();
    if (object.kind === "portal") return { kind: "close_portal", chunk, start, end };
    if (this.#statements.isUncertain(object.name)) return "wait";
    const statement = this.#statements.get(object.name);
    if (statement !== undefined) this.#statements.remove(statement);
    return {
      kind: "close_statement",
      chunk,
      start,
      end,
      statement,
      mayExistOnServer: object.name === "" || mayExistOnServer(object.name),
    };
  }
}

/**
 * A name the client never parsed may still be one it made by SQL-level PREPARE; the unnamed statement can't be, and neither can a
 * name that we give ourselves, which would be another client's statement.
 */
function mayExistOnServer(name: string): boolean {
  return name !== "" && !name.startsWith(SERVER_NAME_PREFIX) && !name.startsWith("_walgate");
}

/** PostgreSQL's answer to a message whose fields don't fit its length; the frames around it are sound, so the session goes on. */
function malformed(): Operation {
  return failing("08P01", "invalid message format");
}
