// One session of a simulated server: PostgreSQL's rules for messages, errors, transactions and waits.
import { readBind, readNamedObject } from "#pool/wire/frontend-messages.ts";
import { latin1 } from "#pool/wire/text.ts";
import { HEADER_BYTES, concatBytes, readInt32 } from "#pool/wire/message-types.ts";
import { parseText, queryText } from "#test/support/message-text.ts";
import { server as reply } from "#test/support/wire-frames.ts";
import type { Timer } from "#pool/time/clock.ts";
import { BIND_COMPLETE, PARSE_COMPLETE, READY, rowDescription } from "./answer-frames.ts";
import type { SimSocket } from "../sim-network.ts";
import { greeting, missingPortal, missingStatement, readValues } from "./session-messages.ts";
import { type SessionState, SessionError, StatementRunner } from "./statement-runner.ts";
import type { SimCluster } from "./sim-cluster.ts";
import type { SimServer } from "./sim-server.ts";
import { columnsOf, readStatements, type SimStatement } from "./statements.ts";

const CANCEL_REQUEST = 80_877_102;
const SSL_REQUEST = 80_877_103;
/** The answer to an SSLRequest: the letter N, which is no frame. */
const NO_TLS = new Uint8Array(["N".charCodeAt(0)]);

interface Wait {
  readonly timer: Timer;
  readonly fail: (error: SessionError) => void;
  /** What a read that takes its time would say now. */
  readonly begin: (() => readonly Uint8Array[]) | undefined;
}

interface Portal {
  readonly statement: SimStatement | undefined;
  readonly values: readonly string[];
}

export class ServerSession {
  readonly secret: number;
  readonly #cluster: SimCluster;
  readonly #server: SimServer;
  readonly #socket: SimSocket;
  readonly #processId: number;
  readonly #runner: StatementRunner;
  #rest: Uint8Array = new Uint8Array(0);
  #out: Uint8Array[] = [];
  #isStarted = false;
  #isSkipping = false;
  #isGone = false;
  /** What the session waits for; a message that waits is gone on with when it is over. */
  #waiting: Wait | undefined;
  /** application_name as the client was last told. */
  #reportedName = "";
  readonly #prepared = new Map<string, SimStatement | undefined>();
  readonly #portals = new Map<string, Portal>();

  constructor(cluster: SimCluster, server: SimServer, socket: SimSocket, processId: number) {
    this.#cluster = cluster;
    this.#server = server;
    this.#socket = socket;
    this.#processId = processId;
    this.secret = cluster.random.below(2 ** 31);
    this.#runner = new StatementRunner(cluster, server, processId);
    socket.setHandlers({
      data: (bytes) => this.#receive(bytes),
      drain: () => {},
      close: () => this.#end(),
    });
  }

  get state(): SessionState {
    return this.#runner.state;
  }

  /** The server is gone, or this session is: half an answer may have been sent. */
  lose(): void {
    if (this.#isGone) return;
    const { random } = this.#cluster;
    const begun = random.chance(0.5) ? (this.#waiting?.begin?.() ?? []) : [];
    const answer = concatBytes([...this.#out, ...begun]);
    this.#end();
    if (answer.length < 2 || random.chance(0.5)) {
      this.#socket.reset();
    } else {
      // The reset comes behind what was sent before it.
      this.#socket.write(answer.slice(0, 1 + random.below(answer.length - 1)));
      this.#socket.destroy();
    }
  }

  cancel(): void {
    this.#waiting?.fail(new SessionError("57014", "canceling statement due to user request"));
  }

  #end(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#waiting?.timer.cancel();
    this.#waiting = undefined;
    this.#runner.end();
    this.#server.sessions.delete(this.#processId);
  }

  #receive(bytes: Uint8Array): void {
    this.#rest = this.#rest.length === 0 ? bytes : concatBytes([this.#rest, bytes]);
    this.#proceed();
  }

  /** Carries out what has come, up to a message that has to wait. */
  #proceed(): void {
    let at = 0;
    const bytes = this.#rest;
    while (this.#waiting === undefined && !this.#isGone) {
      const head = this.#isStarted ? 1 : 0;
      if (bytes.length - at < head + 4) break;
      const end = at + head + readInt32(bytes, at + head);
      if (bytes.length < end) break;
      const frame = bytes.slice(at, end);
      at = end;
      const hungMs = this.#server.hungUntil - this.#cluster.clock.now();
      if (hungMs > 0) this.#wait(hungMs, () => this.#take(frame));
      else this.#take(frame);
    }
    this.#rest = at === 0 ? bytes : bytes.slice(at);
  }

  #take(frame: Uint8Array): void {
    if (this.#isStarted) this.#message(frame);
    else this.#startup(frame);
  }

  #startup(packet: Uint8Array): void {
    if (readInt32(packet, 4) === CANCEL_REQUEST) {
      this.#cluster.cancel(this.#server, readInt32(packet, 8), readInt32(packet, 12));
      this.#socket.end();
      this.#end();
      return;
    }
    if (readInt32(packet, 4) === SSL_REQUEST) {
      this.#socket.write(NO_TLS);
      return;
    }
    this.#isStarted = true;
    this.#runner.login(packet);
    this.#reportedName = this.#runner.applicationName;
    this.#out.push(greeting(this.#processId, this.secret, this.#reportedName));
    this.#send();
  }

  #message(frame: Uint8Array): void {
    const type = String.fromCharCode(frame[0] ?? 0);
    if (type === "X") {
      this.#end();
      this.#socket.end();
      return;
    }
    if (this.#isSkipping && type !== "S") return;
    if (type === "Q") {
      this.#query(queryText(frame) ?? "");
      return;
    }
    try {
      this.#extended(type, frame);
    } catch (error) {
      this.#failed(error);
      this.#isSkipping = true;
    }
  }

  #query(text: string): void {
    this.#prepared.delete("");
    const statements = readStatements(text);
    if (statements.length === 0) this.#out.push(reply.emptyQuery());
    this.#runNext(statements, 0);
  }

  /** One statement after the other; each may have to wait first. */
  #runNext(statements: readonly SimStatement[], index: number): void {
    const statement = statements[index];
    if (statement === undefined) {
      this.#runner.endImplicit();
      this.#ready();
      return;
    }
    const fail = (error: unknown): void => {
      this.#failed(error);
      this.#ready();
    };
    this.#whenFree(statement, [], fail, () => {
      const columns = columnsOf(statement) ?? this.#runner.internalColumns(statement);
      if (columns !== undefined) this.#out.push(rowDescription(columns));
      // A simple Query runs in the unnamed portal, which it leaves behind when it fails.
      if (statement.kind !== "unknown") this.#portals.set("", { statement, values: [] });
      this.#run(statement, []);
      this.#portals.delete("");
      this.#runNext(statements, index + 1);
    });
  }

  #extended(type: string, frame: Uint8Array): void {
    switch (type) {
      case "P":
        this.#parse(frame);
        return;
      case "B":
        this.#bind(frame);
        return;
      case "D":
        this.#describe(frame);
        return;
      case "E":
        this.#execute(frame);
        return;
      case "C":
        this.#close(frame);
        return;
      case "S":
        this.#isSkipping = false;
        this.#runner.endImplicit();
        this.#ready();
        return;
      default:
        this.#send();
    }
  }

  #parse(frame: Uint8Array): void {
    const parse = parseText(frame);
    if (parse === undefined) throw new SessionError("08P01", "invalid message format");
    const { name, text } = parse;
    // Gone whatever becomes of the new one.
    if (name === "") this.#prepared.delete("");
    const [statement] = readStatements(text);
    if (statement?.kind === "unknown") throw this.#runner.unknown(text);
    if (statement !== undefined) this.#runner.requireUsable(statement);
    if (name !== "" && this.#prepared.has(name)) {
      throw new SessionError("42P05", `prepared statement "${name}" already exists`);
    }
    this.#prepared.set(name, statement);
    this.#out.push(PARSE_COMPLETE);
  }

  #bind(frame: Uint8Array): void {
    const bind = readBind(frame);
    if (bind === undefined) throw new SessionError("08P01", "invalid message format");
    if (!this.#prepared.has(bind.statement)) throw missingStatement(bind.statement);
    const statement = this.#prepared.get(bind.statement);
    this.#runner.requireUsable(statement);
    const portal = latin1(frame, HEADER_BYTES, bind.statementOffset - 1);
    if (portal !== "" && this.#portals.has(portal)) {
      throw new SessionError("42P03", `cursor "${portal}" already exists`);
    }
    this.#portals.set(portal, { statement, values: readValues(frame, bind.tailOffset) });
    this.#out.push(BIND_COMPLETE);
  }

  #close(frame: Uint8Array): void {
    const object = readNamedObject(frame);
    if (object?.kind === "statement") this.#prepared.delete(object.name);
    else this.#portals.delete(object?.name ?? "");
    this.#out.push(reply.closeComplete());
  }

  #describe(frame: Uint8Array): void {
    const object = readNamedObject(frame);
    const name = object?.name ?? "";
    const isStatement = object?.kind === "statement";
    if (isStatement ? !this.#prepared.has(name) : !this.#portals.has(name)) {
      throw isStatement ? missingStatement(name) : missingPortal(name);
    }
    const statement = isStatement ? this.#prepared.get(name) : this.#portals.get(name)?.statement;
    const columns = statement === undefined ? undefined : columnsOf(statement);
    if (columns !== undefined) this.#runner.requireUsable(statement);
    if (isStatement) this.#out.push(reply.parameterDescription());
    this.#out.push(columns === undefined ? reply.noData() : rowDescription(columns));
  }

  #execute(frame: Uint8Array): void {
    const name = latin1(frame, HEADER_BYTES, frame.indexOf(0, HEADER_BYTES));
    const portal = this.#portals.get(name);
    if (portal === undefined) throw missingPortal(name);
    const { statement, values } = portal;
    if (statement === undefined) {
      this.#out.push(reply.emptyQuery());
      return;
    }
    const fail = (error: unknown): void => {
      this.#failed(error);
      this.#isSkipping = true;
    };
    this.#whenFree(statement, values, fail, () => this.#run(statement, values));
  }

  #run(statement: SimStatement, values: readonly string[]): void {
    this.#out.push(...this.#runner.run(statement, values));
    const { kind } = statement;
    if (kind === "discard_all") {
      // The unnamed statement is not among those that it ends.
      for (const name of this.#prepared.keys()) if (name !== "") this.#prepared.delete(name);
    }
    // They live as long as their transaction.
    if (kind === "discard_all" || kind === "commit" || kind === "rollback") this.#portals.clear();
  }

  /** Runs at once, or when a lock is free or the statement has taken its time. */
  #whenFree(
    statement: SimStatement,
    values: readonly string[],
    fail: (error: unknown) => void,
    run: () => void,
  ): void {
    const attempt = (): void => {
      try {
        run();
      } catch (error) {
        fail(error);
      }
    };
    let obstacle: ReturnType<StatementRunner["obstacle"]>;
    try {
      obstacle = this.#runner.obstacle(statement, values);
    } catch (error) {
      fail(error);
      return;
    }
    if (obstacle === undefined) {
      attempt();
    } else if (obstacle.kind === "slow") {
      const isRead = statement.kind === "read" || statement.kind === "big";
      const begin = isRead ? () => this.#runner.run(statement, values) : undefined;
      this.#wait(obstacle.ms, attempt, fail, begin);
    } else {
      const deadlock = new SessionError("40P01", "deadlock detected");
      const timer = this.#cluster.clock.schedule(obstacle.ms, () => this.#waiting?.fail(deadlock));
      this.#waiting = {
        timer,
        fail: (error) => this.#resume(timer, () => fail(error)),
        begin: undefined,
      };
      obstacle.whenFree(() =>
        this.#resume(timer, () => this.#whenFree(statement, values, fail, run)),
      );
    }
  }

  #wait(
    ms: number,
    then: () => void,
    fail?: (error: unknown) => void,
    begin?: () => readonly Uint8Array[],
  ): void {
    const timer = this.#cluster.clock.schedule(ms, () => this.#resume(timer, then));
    this.#waiting = {
      timer,
      begin,
      // What hangs can't even be cancelled.
      fail: (error) => {
        if (fail !== undefined) this.#resume(timer, () => fail(error));
      },
    };
  }

  #resume(timer: Timer, then: () => void): void {
    timer.cancel();
    if (this.#isGone || this.#waiting?.timer !== timer) return;
    this.#waiting = undefined;
    then();
    this.#proceed();
  }

  #failed(error: unknown): void {
    if (!(error instanceof SessionError)) throw error;
    this.#runner.failed();
    this.#out.push(reply.error(error.sqlState, error.message));
  }

  #ready(): void {
    const { applicationName, status } = this.#runner;
    if (status === "I") this.#portals.clear();
    if (applicationName !== this.#reportedName) {
      this.#reportedName = applicationName;
      this.#out.push(reply.parameterStatus("application_name", applicationName));
    }
    this.#out.push(READY[status]);
    this.#send();
  }

  #send(): void {
    if (this.#out.length === 0 || this.#isGone) return;
    const answer = concatBytes(this.#out);
    this.#out = [];
    this.#cluster.trace.note(`${this.#server.name}/${this.#processId} answers ${answer.length}`);
    this.#socket.write(answer);
  }
}
