// Reads one frontend message into an operation and keeps the client's view of its prepared statements in step.
import type { PoolMode, StartupProfile } from "../connections/startup-profile.ts";
import type { StatementClassifier } from "../sql/statement-classifier.ts";
import { type StatementClass, UNKNOWN_CLASS } from "../sql/statement-class.ts";
import { encodeErrorResponse } from "../wire/backend-messages.ts";
import {
  latin1,
  readBind,
  readNamedObject,
  readParse,
  readQuery,
} from "../wire/frontend-messages.ts";
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

/** Also a set_config(…, true), and for good measure any other. */
const LOCAL_SETTING = /\bset\s+local\b|\bset_config\b/i;
const RESET_ALL = /\breset\s+all\b/i;

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

  /** `frame` is whole. */
  read(type: number, frame: Uint8Array): ReadResult {
    const result = this.#read(type, frame);
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

  #read(type: number, frame: Uint8Array): ReadResult {
    switch (type) {
      case Frontend.QUERY:
        return this.#query(frame);
      case Frontend.PARSE:
        return this.#parse(frame);
      case Frontend.BIND:
        return this.#bind(frame);
      case Frontend.DESCRIBE:
        return this.#describe(frame);
      case Frontend.EXECUTE:
        return { kind: "execute", bytes: frame };
      case Frontend.SYNC:
        this.#statements.endSegment();
        return { kind: "sync", bytes: frame };
      case Frontend.FLUSH:
        return { kind: "flush", bytes: frame };
      case Frontend.CLOSE:
        return this.#close(frame);
      case Frontend.FUNCTION_CALL:
        this.#statements.isolate();
        this.#statements.endSegment();
        return { kind: "function_call", bytes: frame };
      case Frontend.COPY_DATA:
        return { kind: "copy_data", bytes: frame };
      case Frontend.COPY_DONE:
      case Frontend.COPY_FAIL:
        return { kind: "copy_end", bytes: frame };
      default:
        return "invalid";
    }
  }

  #readLarge(type: number, prefix: Uint8Array): ReadResult {
    switch (type) {
      case Frontend.QUERY:
        return this.#queryOf(prefix, UNREAD_CLASS);
      case Frontend.PARSE:
        return this.#largeParse(prefix);
      case Frontend.BIND:
        return this.#bind(prefix);
      case Frontend.FUNCTION_CALL:
        this.#statements.isolate();
        this.#statements.endSegment();
        return { kind: "function_call", bytes: prefix };
      case Frontend.COPY_DATA:
        return { kind: "copy_data", bytes: prefix };
      default:
        return "invalid";
    }
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
      return { kind: "parse", bytes: prefix, statement };
    }
    if (this.#statements.isUncertain(name)) return "wait";
    if (this.#statements.get(name) !== undefined) return alreadyExists(name);
    const ownServerName = new TextEncoder().encode(`${SERVER_NAME_PREFIX}own_${++ownStatements}`);
    const statement = { ...unkept, ownServerName };
    this.#statements.add(statement);
    const header = prefix.slice(0, HEADER_BYTES);
    writeInt32(header, 1, readInt32(prefix, 1) + ownServerName.length - (nameEnd - HEADER_BYTES));
    const bytes = concatBytes([header, ownServerName, prefix.subarray(nameEnd)]);
    return { kind: "parse", bytes, statement };
  }

  #query(frame: Uint8Array): Operation {
    const text = readQuery(frame);
    if (text === undefined) return this.#queryOf(frame, undefined);
    const statementClass = this.#classifier.classify(text);
    const query = this.#queryOf(frame, statementClass);
    this.#noteLocalSetting(text, statementClass);
    const resetsAll = statementClass.pin !== undefined && RESET_ALL.test(text);
    return resetsAll ? { ...query, resetsAll } : query;
  }

  #queryOf(
    bytes: Uint8Array,
    statementClass: StatementClass | undefined,
  ): Extract<Operation, { kind: "query" }> {
    // A simple Query ends the unnamed statement ("Extended Query").
    this.#statements.setUnnamed(undefined);
    this.#notePin(statementClass);
    this.#statements.endSegment();
    return { kind: "query", bytes, class: statementClass };
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
  #noteLocalSetting(text: string, { access }: StatementClass): void {
    if (access !== "read" && LOCAL_SETTING.test(text)) this.#statements.isolate();
  }

  #parse(frame: Uint8Array): ReadResult {
    const message = readParse(frame);
    if (message === undefined) return malformed();
    const { name, text, tailOffset } = message;
    const statementClass = this.#classifier.classify(text);
    const tail = frame.subarray(tailOffset);
    this.#noteLocalSetting(text, statementClass);
    if (name === "") {
      const statement: ClientStatement = {
        name,
        class: statementClass,
        // A copy: the chunk that the frame is a view into may be much larger and must not be kept alive.
        tail: tail.slice(),
        registered: undefined,
        ownServerName: undefined,
      };
      this.#statements.setUnnamed(statement);
      return { kind: "parse", bytes: frame, statement };
    }
    if (this.#statements.isUncertain(name)) return "wait";
    if (this.#statements.get(name) !== undefined) return alreadyExists(name);
    if (this.#statements.isFull) return TOO_MANY_STATEMENTS;
    const statement = this.#statements.share(name, statementClass, tail);
    this.#statements.add(statement);
    return { kind: "parse", bytes: frame, statement };
  }

  /** Also for the prefix of a large Bind. */
  #bind(frame: Uint8Array): ReadResult {
    const message = readBind(frame);
    if (message === undefined) return malformed();
    if (this.#statements.isUncertain(message.statement)) return "wait";
    const statement = this.#statements.get(message.statement);
    if (statement === undefined && !mayExistOnServer(message.statement)) {
      return noSuchStatement(message.statement);
    }
    this.#notePin(statement?.class);
    return { kind: "bind", bytes: frame, message, statement };
  }

  #describe(frame: Uint8Array): ReadResult {
    const object = readNamedObject(frame);
    if (object === undefined) return malformed();
    if (object.kind === "portal") return { kind: "describe_portal", bytes: frame };
    if (this.#statements.isUncertain(object.name)) return "wait";
    const statement = this.#statements.get(object.name);
    if (statement === undefined && !mayExistOnServer(object.name)) {
      return noSuchStatement(object.name);
    }
    return { kind: "describe_statement", bytes: frame, statement };
  }

  #close(frame: Uint8Array): ReadResult {
    const object = readNamedObject(frame);
    if (object === undefined) return malformed();
    if (object.kind === "portal") return { kind: "close_portal", bytes: frame };
    if (this.#statements.isUncertain(object.name)) return "wait";
    const statement = this.#statements.get(object.name);
    if (statement !== undefined) this.#statements.remove(statement);
    return {
      kind: "close_statement",
      bytes: frame,
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
