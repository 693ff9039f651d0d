// A PostgreSQL session as a model: its rules for pipelines, errors, portals, transactions and COPY, with a handful of statements in place of SQL.
import { readErrorFields } from "#pool/wire/backend-messages.ts";
import { readBind, readNamedObject } from "#pool/wire/frontend-messages.ts";
import { HEADER_BYTES, concatBytes, readInt32 } from "#pool/wire/message-types.ts";
import { parseText, queryText } from "./message-text.ts";
import { describeRequests, server, splitFrames } from "./wire-frames.ts";

const decoder = new TextDecoder();

/**
 * What the model understands, as PostgreSQL would: SELECT of one number, `generate_series(1, N)`, `1/0` (22012 when run),
 * `nothing_here` (42P01 when parsed), INSERT, BEGIN, COMMIT, ROLLBACK, SET, RESET, LISTEN, COPY t FROM STDIN and TO STDOUT,
 * DISCARD ALL, DEALLOCATE ALL, set_config(), the position probe, the empty text; anything else is a syntax error.
 */
export class ModelServer {
  readonly #send: (bytes: Uint8Array) => void;
  readonly #statements = new Map<string, string>();
  readonly #portals = new Map<string, Portal>();
  readonly #settings = new Map<string, string>();
  #status: "I" | "T" | "E" = "I";
  #isSkipping = false;
  #copy: "simple" | "extended" | undefined;
  #rest: Uint8Array = new Uint8Array(0);
  /** Rows of the latest COPY FROM STDIN. */
  copied: string[] = [];
  /** Every message as `describeRequests` shows it. */
  readonly received: string[] = [];
  /** What the position probe answers. */
  lsn = "0/3000060";
  hasEnded = false;

  constructor(send: (bytes: Uint8Array) => void) {
    this.#send = send;
  }

  get status(): "I" | "T" | "E" {
    return this.#status;
  }

  /** Names of prepared statements, the unnamed one as an empty string. */
  get statementNames(): string[] {
    return [...this.#statements.keys()];
  }

  get settings(): ReadonlyMap<string, string> {
    return this.#settings;
  }

  /** As by DEALLOCATE in a function: nothing is said about it. */
  dropStatements(): void {
    this.#statements.clear();
  }

  receive(bytes: Uint8Array): void {
    const frames = splitFrames(concatBytes([this.#rest, bytes]));
    this.#rest = new Uint8Array(0);
    const replies: Uint8Array[] = [];
    for (const { type, bytes: frame } of frames) {
      if (type === "partial") {
        this.#rest = frame;
        break;
      }
      this.received.push(...describeRequests(frame));
      if (!this.hasEnded) replies.push(...this.#answer(type, frame));
    }
    if (replies.length > 0) this.#send(concatBytes(replies));
  }

  #answer(type: string, frame: Uint8Array): Uint8Array[] {
    if (type === "X") {
      this.hasEnded = true;
      return [];
    }
    if (this.#copy !== undefined) return this.#copyMessage(type, frame);
    if (type === "S") {
      this.#isSkipping = false;
      if (this.#status === "I") this.#portals.clear();
      return [server.ready(this.#status)];
    }
    if (this.#isSkipping) return [];
    if (type === "Q") return this.#query(queryText(frame) ?? "");
    const replies = this.#extended(type, frame);
    if (replies.some((reply) => reply[0] === ERROR)) this.#isSkipping = true;
    return replies;
  }

  #query(text: string): Uint8Array[] {
    this.#statements.delete("");
    const replies: Uint8Array[] = [];
    const texts = text.split(";").filter((part) => part.trim() !== "");
    if (texts.length === 0) replies.push(server.emptyQuery());
    for (const part of texts) {
      const fault = this.#faultOf(part);
      replies.push(
        ...(fault === undefined ? this.#run(part, true, undefined) : [this.#failed(fault)]),
      );
      if (this.#copy !== undefined) return replies;
      if (replies.at(-1)?.[0] === ERROR) break;
    }
    if (this.#status === "I") this.#portals.clear();
    return [...replies, server.ready(this.#status)];
  }

  #extended(type: string, frame: Uint8Array): Uint8Array[] {
    switch (type) {
      case "P":
        return this.#parse(frame);
      case "B":
        return this.#bind(frame);
      case "D":
        return this.#describe(frame);
      case "E":
        return this.#execute(frame);
      case "C":
        return this.#close(frame);
      default:
        // Flush; and copy messages outside a copy, which are ignored.
        return [];
    }
  }

  #parse(frame: Uint8Array): Uint8Array[] {
    const message = parseText(frame);
    if (message === undefined) return [this.#failed(["08P01", "invalid message format"])];
    const { name, text } = message;
    if (name === "") this.#statements.delete("");
    const fault = this.#faultOf(text);
    if (fault !== undefined) return [this.#failed(fault)];
    if (name !== "" && this.#statements.has(name)) {
      return [this.#failed(["42P05", `prepared statement "${name}" already exists`])];
    }
    this.#statements.set(name, text);
    return [server.parseComplete()];
  }

  #bind(frame: Uint8Array): Uint8Array[] {
    const message = readBind(frame);
    if (message === undefined) return [this.#failed(["08P01", "invalid message format"])];
    const text = this.#statements.get(message.statement);
    if (text === undefined) return [this.#failed(missing(message.statement))];
    const fault = this.#faultOf(text);
    if (fault !== undefined) return [this.#failed(fault)];
    const portal = decoder.decode(frame.subarray(HEADER_BYTES, message.statementOffset - 1));
    if (portal !== "" && this.#portals.has(portal)) {
      return [this.#failed(["42P03", `cursor "${portal}" already exists`])];
    }
    this.#portals.set(portal, { text, rowsSent: 0 });
    return [server.bindComplete()];
  }

  #describe(frame: Uint8Array): Uint8Array[] {
    const object = readNamedObject(frame);
    if (object === undefined) return [this.#failed(["08P01", "invalid message format"])];
    const { kind, name } = object;
    const text = kind === "statement" ? this.#statements.get(name) : this.#portals.get(name)?.text;
    if (text === undefined) {
      return [this.#failed(kind === "statement" ? missing(name) : noPortal(name))];
    }
    // PostgreSQL still describes what has no result; a pool that has to prepare the statement first can't.
    if (this.#status === "E") return [this.#failed(ABORTED)];
    const result = rowsOf(text, "") === undefined ? server.noData() : server.rowDescription("c");
    return kind === "statement" ? [server.parameterDescription(), result] : [result];
  }

  #execute(frame: Uint8Array): Uint8Array[] {
    const nameEnd = frame.indexOf(0, HEADER_BYTES);
    const name = decoder.decode(frame.subarray(HEADER_BYTES, nameEnd));
    const portal = this.#portals.get(name);
    if (portal === undefined) return [this.#failed(noPortal(name))];
    if (portal.text.trim() === "") return [server.emptyQuery()];
    const fault = this.#faultOf(portal.text);
    if (fault !== undefined) return [this.#failed(fault)];
    return this.#run(portal.text, false, { portal, rowsMax: readInt32(frame, nameEnd + 1) });
  }

  #close(frame: Uint8Array): Uint8Array[] {
    const object = readNamedObject(frame);
    if (object === undefined) return [this.#failed(["08P01", "invalid message format"])];
    if (object.kind === "statement") this.#statements.delete(object.name);
    else this.#portals.delete(object.name);
    return [server.closeComplete()];
  }

  /** What is wrong with the text before it is run. */
  #faultOf(text: string): Fault | undefined {
    const statement = normal(text);
    if (!isKnown(statement)) return ["42601", "syntax error"];
    if (this.#status === "E" && !/^(commit|rollback)/.test(statement)) return ABORTED;
    if (statement.includes("nothing_here"))
      return ["42P01", 'relation "nothing_here" does not exist'];
    return undefined;
  }

  #run(text: string, isSimple: boolean, limit: Limit | undefined): Uint8Array[] {
    const statement = normal(text);
    const rows = rowsOf(text, this.lsn);
    if (rows !== undefined) return this.#select(statement, rows, isSimple, limit);
    if (statement.startsWith("copy t from")) {
      this.#copy = isSimple ? "simple" : "extended";
      this.copied = [];
      return [server.copyIn()];
    }
    if (statement.startsWith("copy t to")) {
      return [
        server.copyOut(),
        server.copyData("1\n"),
        server.copyDone(),
        server.commandComplete("COPY 1"),
      ];
    }
    return [server.commandComplete(this.#effect(statement))];
  }

  #select(
    statement: string,
    rows: readonly string[],
    isSimple: boolean,
    limit: Limit | undefined,
  ): Uint8Array[] {
    if (statement === "select 1/0") return [this.#failed(["22012", "division by zero"])];
    for (const [, name = "", value = ""] of statement.matchAll(
      /set_config\('([^']*)', e'([^']*)'/g,
    )) {
      if (value === "refused")
        return [this.#failed(["22023", `invalid value for parameter "${name}"`])];
      this.#settings.set(name, value);
    }
    const start = limit?.portal.rowsSent ?? 0;
    const rowsMax = limit === undefined || limit.rowsMax === 0 ? rows.length : limit.rowsMax;
    const sent = rows.slice(start, start + rowsMax);
    if (limit !== undefined) limit.portal.rowsSent += sent.length;
    const isSuspended = limit !== undefined && limit.rowsMax > 0 && sent.length === limit.rowsMax;
    return [
      ...(isSimple ? [server.rowDescription("c")] : []),
      ...sent.map((row) => server.dataRow(row)),
      isSuspended ? server.portalSuspended() : server.commandComplete(`SELECT ${sent.length}`),
    ];
  }

  /** Command tag of a statement without rows. */
  #effect(statement: string): string {
    const [first = ""] = statement.split(" ");
    switch (first) {
      case "begin":
        this.#status = "T";
        return "BEGIN";
      case "commit":
      case "rollback": {
        const tag = this.#status === "E" ? "ROLLBACK" : first.toUpperCase();
        this.#status = "I";
        this.#portals.clear();
        return tag;
      }
      case "discard":
        this.#statements.clear();
        this.#settings.clear();
        return "DISCARD ALL";
      case "deallocate":
        for (const name of this.#statements.keys()) if (name !== "") this.#statements.delete(name);
        return "DEALLOCATE ALL";
      case "insert":
        return "INSERT 0 1";
      case "reset":
        this.#settings.delete(statement.slice("reset ".length));
        return "RESET";
      default:
        return first.toUpperCase();
    }
  }

  #copyMessage(type: string, frame: Uint8Array): Uint8Array[] {
    const isSimple = this.#copy === "simple";
    switch (type) {
      case "d": {
        const row = decoder.decode(frame.subarray(HEADER_BYTES));
        if (row === "bad\n") return this.#copyFailed(["22P02", "invalid input syntax"]);
        this.copied.push(row);
        return [];
      }
      case "c":
        this.#copy = undefined;
        return [
          server.commandComplete(`COPY ${this.copied.length}`),
          ...(isSimple ? [server.ready(this.#status)] : []),
        ];
      case "f":
        return this.#copyFailed(["57014", "COPY from stdin failed"]);
      case "S":
      case "H":
        return [];
      default:
        this.hasEnded = true;
        return [server.error("08P01", "protocol synchronization was lost", "FATAL")];
    }
  }

  #copyFailed(fault: Fault): Uint8Array[] {
    const isSimple = this.#copy === "simple";
    this.#copy = undefined;
    const error = this.#failed(fault);
    if (isSimple) return [error, server.ready(this.#status)];
    this.#isSkipping = true;
    return [error];
  }

  #failed([sqlState, text]: Fault): Uint8Array {
    if (this.#status === "T") this.#status = "E";
    return server.error(sqlState, text);
  }
}

interface Portal {
  readonly text: string;
  rowsSent: number;
}

interface Limit {
  readonly portal: Portal;
  readonly rowsMax: number;
}

type Fault = readonly [sqlState: string, text: string];

const ERROR = "E".charCodeAt(0);
const ABORTED: Fault = ["25P02", "current transaction is aborted"];

const KNOWN =
  /^(|select (\d+|1\/0|\* from nothing_here|\* from generate_series\(1, \d+\)|pg_catalog\..*)|insert into t values \(1\)|begin|commit|rollback|(set|reset|listen) .*|copy t (from stdin|to stdout)|discard all|deallocate all)$/;

function normal(text: string): string {
  return text.trim().toLowerCase();
}

function isKnown(statement: string): boolean {
  return KNOWN.test(statement);
}

/** Undefined for a statement without a result. */
function rowsOf(text: string, lsn: string): readonly string[] | undefined {
  const statement = normal(text);
  if (!statement.startsWith("select ")) return undefined;
  const series = /generate_series\(1, (\d+)\)/.exec(statement);
  if (series !== null) return Array.from({ length: Number(series[1]) }, (_, i) => `${i + 1}`);
  if (statement.includes("lsn")) return [lsn];
  return [statement.slice("select ".length)];
}

function missing(name: string): Fault {
  return [
    "26000",
    name === ""
      ? "unnamed prepared statement does not exist"
      : `prepared statement "${name}" does not exist`,
  ];
}

function noPortal(name: string): Fault {
  return ["34000", `portal "${name}" does not exist`];
}

/** The SQLSTATE of an ErrorResponse. */
export function sqlStateOf(frame: Uint8Array): string | undefined {
  return readErrorFields(frame).get("C");
}
