// Writes what concerns prepared statements: makes sure that the server has the ones a client uses, under the names they have there.
import type { BackendConnection } from "../backend/backend-connection.ts";
import type { OutputBatch } from "../backend/output-batch.ts";
import type { BackendStatements } from "../backend/backend-statements.ts";
import { Expect, Fate, type ReplyHook } from "../exchange/reply-plan.ts";
import {
  CLOSE_COMPLETE_FRAME,
  PARSE_COMPLETE_FRAME,
  encodeErrorResponse,
} from "../wire/backend-messages.ts";
import {
  FAILING_BIND_FRAME,
  encodeBindHead,
  encodeCloseStatement,
  encodeDescribeStatement,
  encodeParse,
} from "../wire/frontend-messages.ts";
import { type Span, Status } from "../wire/message-types.ts";
import type { ClientStatement, ClientStatements } from "./client-statements.ts";
import type { Operation } from "./operation.ts";
import type { RegisteredStatement } from "./statement-registry.ts";

const UNNAMED = new Uint8Array(0);
const UNNAMED_IS_GONE = encodeErrorResponse({
  severity: "ERROR",
  sqlState: "26000",
  message: "unnamed prepared statement does not exist",
});

export class StatementWriter {
  readonly #backend: BackendConnection;
  readonly #clientStatements: ClientStatements;
  readonly #batch: OutputBatch;

  constructor(backend: BackendConnection, statements: ClientStatements) {
    this.#backend = backend;
    this.#clientStatements = statements;
    this.#batch = backend.batch;
  }

  /** Makes the server fail here, as its state machine must know of the error; the client reads `error` instead. */
  fail(error: Uint8Array): void {
    this.#backend.hasUnsynced = true;
    this.#backend.plan.expect(Expect.BIND, Fate.HIDE_ERROR, { replacement: error });
    this.#batch.add(FAILING_BIND_FRAME);
  }

  parse(message: Span, statement: ClientStatement): void {
    const backend = this.#backend;
    backend.hasUnsynced = true;
    if (statement.ownServerName !== undefined) {
      backend.plan.expect(Expect.PARSE, Fate.FORWARD, {
        failed: () => this.#clientStatements.undoParse(statement),
      });
      this.#add(message);
      return;
    }
    const { registered } = statement;
    if (registered === undefined || !this.#isNaming) {
      this.#parseUnnamed(statement, Fate.FORWARD, statement.name === "" ? message : undefined);
      return;
    }
    const presence = backend.statements.presence(registered, backend.segment);
    if (presence === "present" && !this.#mayHaveFailed) {
      backend.plan.answer(PARSE_COMPLETE_FRAME, () => this.#clientStatements.undoParse(statement));
      return;
    }
    this.#parseNamed(registered, presence !== "absent", Fate.FORWARD, statement);
  }

  bind(operation: Extract<Operation, { kind: "bind" }>): void {
    const { chunk, start, end, message, statement } = operation;
    const backend = this.#backend;
    backend.hasUnsynced = true;
    const name = statement === undefined ? undefined : this.#ensure(statement);
    if (statement !== undefined && name === undefined) {
      this.fail(UNNAMED_IS_GONE);
      return;
    }
    backend.plan.expect(Expect.BIND);
    if (name === undefined || (name.length === 0 && message.statement === "")) {
      this.#add(operation);
      return;
    }
    this.#batch.add(encodeBindHead(chunk, start, message, name));
    this.#batch.add(chunk, message.tailOffset, end);
  }

  describe(message: Span, statement: ClientStatement | undefined): void {
    const backend = this.#backend;
    backend.hasUnsynced = true;
    const name = statement === undefined ? undefined : this.#ensure(statement);
    if (statement !== undefined && name === undefined) {
      this.fail(UNNAMED_IS_GONE);
      return;
    }
    backend.plan.expect(Expect.DESCRIBE);
    if (name === undefined) this.#add(message);
    else this.#batch.add(encodeDescribeStatement(name));
  }

  /** A shared statement stays on the server for the next client that prepares the same text. */
  close(operation: Extract<Operation, { kind: "close_statement" }>): void {
    const { statement, mayExistOnServer } = operation;
    const { plan, statements } = this.#backend;
    this.#backend.hasUnsynced = true;
    const restore = (): void => {
      if (statement !== undefined) this.#clientStatements.undoClose(statement);
    };
    if (statement?.ownServerName !== undefined) {
      plan.expect(Expect.CLOSE, Fate.FORWARD, { failed: restore });
      this.#batch.add(encodeCloseStatement(statement.ownServerName));
    } else if (statement?.registered !== undefined || !mayExistOnServer) {
      plan.answer(CLOSE_COMPLETE_FRAME, restore);
    } else {
      statements.unnamedDropped();
      plan.expect(Expect.CLOSE, Fate.FORWARD, { failed: restore });
      this.#add(operation);
    }
  }

  /** In untrusted profiles nothing of ours is named: whoever has the session can replace any named statement. */
  get #isNaming(): boolean {
    return this.#backend.profile.isTrusted;
  }

  /** In a failed transaction block the server refuses a Parse with 25P02, so it must see it. */
  get #mayHaveFailed(): boolean {
    const { status, plan, mayBeInTransaction } = this.#backend;
    return status === Status.FAILED || (plan.length > 0 && mayBeInTransaction);
  }

  /** `mayExist`: it is closed first, since closing what is not there is no error, and parsing what is there is one. */
  #parseNamed(
    registered: RegisteredStatement,
    mayExist: boolean,
    fate: number,
    statement: ClientStatement | undefined,
  ): void {
    const { plan, statements, segment, profile } = this.#backend;
    if (mayExist) this.#closeHidden(registered);
    // While the server skips, a Close does nothing, and neither would this Parse.
    while (!plan.isSkipping) {
      const excess = statements.excess(profile.maxPreparedStatements - 1);
      if (excess === undefined) break;
      this.#closeHidden(excess);
    }
    statements.parseSent(registered, segment);
    plan.expect(Expect.PARSE, fate, {
      completed: () => statements.parseAnswered(registered, true),
      failed: () => {
        statements.parseAnswered(registered, false);
        if (statement !== undefined) this.#clientStatements.undoParse(statement);
      },
    });
    this.#batch.add(encodeParse(registered.serverName, registered.tail));
  }

  #closeHidden(registered: RegisteredStatement): void {
    const { plan, statements, segment } = this.#backend;
    statements.closeSent(registered, segment);
    plan.expect(Expect.CLOSE, Fate.HIDE_ALL, {
      completed: () => statements.closeAnswered(registered, true),
      failed: () => statements.closeAnswered(registered, false),
    });
    this.#batch.add(encodeCloseStatement(registered.serverName));
  }

  /** `message`: the client's own unnamed Parse; undefined to make one of the kept text. */
  #parseUnnamed(statement: ClientStatement, fate: number, message: Span | undefined): void {
    const { plan, statements, segment } = this.#backend;
    const change = statements.unnamedSent(statement, segment);
    const owner = fate === Fate.FORWARD ? this.#clientStatements : undefined;
    plan.expect(Expect.PARSE, fate, new UnnamedParse(statements, change, statement, owner));
    if (message !== undefined) this.#add(message);
    else this.#batch.add(encodeParse(UNNAMED, statement.tail ?? UNNAMED));
  }

  #add({ chunk, start, end }: Span): void {
    this.#batch.add(chunk, start, end);
  }

  /** Sees to it that the server has the statement; returns the name it has there, or undefined when it can't be had again. */
  #ensure(statement: ClientStatement): Uint8Array | undefined {
    if (statement.ownServerName !== undefined) return statement.ownServerName;
    const { statements, segment } = this.#backend;
    const { registered } = statement;
    if (registered !== undefined && this.#isNaming) {
      const presence = statements.presence(registered, segment);
      if (presence !== "present") {
        this.#parseNamed(registered, presence === "doubtful", Fate.HIDE_SUCCESS, undefined);
      }
      return registered.serverName;
    }
    if (statements.holdsUnnamed(statement, segment)) return UNNAMED;
    if (statement.tail === undefined) return undefined;
    this.#parseUnnamed(statement, Fate.HIDE_SUCCESS, undefined);
    return UNNAMED;
  }
}

/** Of most of the Parses there are: an object, where closures would be three. */
class UnnamedParse implements ReplyHook {
  readonly #statements: BackendStatements;
  readonly #change: number;
  readonly #statement: ClientStatement;
  /** Undefined when the client has not asked for it. */
  readonly #owner: ClientStatements | undefined;

  constructor(
    statements: BackendStatements,
    change: number,
    statement: ClientStatement,
    owner: ClientStatements | undefined,
  ) {
    this.#statements = statements;
    this.#change = change;
    this.#statement = statement;
    this.#owner = owner;
  }

  completed(): void {
    this.#statements.unnamedAnswered(this.#change, true);
  }

  failed(): void {
    this.#statements.unnamedAnswered(this.#change, false);
    this.#owner?.undoParse(this.#statement);
  }
}
