// A connection of the gateway's own for simple queries: the monitor's and the oracle's questions, one at a time.
import { PoolError } from "../errors.ts";
import type { Clock, Timer } from "../time/clock.ts";
import type { ByteSocket } from "../transport/socket.ts";
import { readErrorFields } from "../wire/backend-messages.ts";
import { FrameSplitter } from "../wire/frame-splitter.ts";
import { encodeQuery, TERMINATE_FRAME } from "../wire/frontend-messages.ts";
import { Backend, concatBytes } from "../wire/message-types.ts";
import { readTextRow } from "./data-row.ts";
import { loginToServer } from "./login.ts";
import type { LoggedInServer, LoginOptions } from "./login.ts";

/** Queries behind the running one: the monitor and the oracle have one each at a time, so more is a fault of ours. */
const WAITING_MAX = 16;
/** Of one frame, and of all rows of one query: answers of ours are a few hundred bytes. */
const RESULT_BYTES_MAX = 1_048_576;

/** Text cells, NULL as null. */
export type TextRow = readonly (string | null)[];

export interface ControlConnection {
  /**
   * Text cells of the rows; of several statements the rows of all of them, in order.
   * `deadline` is clock milliseconds; when it passes while the query runs, the connection closes, because its state is unknown.
   *
   * @throws PoolError with the server's SQLSTATE (the connection stays usable), 57014 at the deadline,
   *   53300 when too many queries wait, 08006 when the connection is or gets closed.
   */
  query(text: string, deadline: number): Promise<readonly TextRow[]>;
  readonly isOpen: boolean;
  /** Called once when the connection has closed, whoever closed it. The owner sets it. */
  onClosed: (() => void) | undefined;
  /** Sends Terminate; queries that wait or run are rejected. */
  close(): void;
}

/** @throws PoolError as loginToServer. */
export async function openControlConnection(
  options: Omit<LoginOptions, "parameters">,
): Promise<ControlConnection> {
  // UTF-8 whatever the database's own encoding is: the answers are read as text.
  const parameters = { application_name: "walgate", client_encoding: "UTF8" };
  return new ServerControlConnection(
    options.clock,
    await loginToServer({ ...options, parameters }),
  );
}

interface Query {
  readonly text: string;
  readonly rows: TextRow[];
  error: PoolError | undefined;
  readonly timer: Timer;
  readonly resolve: (rows: readonly TextRow[]) => void;
  readonly reject: (error: PoolError) => void;
}

class ServerControlConnection implements ControlConnection {
  onClosed: (() => void) | undefined;
  readonly #clock: Clock;
  readonly #socket: ByteSocket;
  readonly #splitter: FrameSplitter;
  /** The first one runs. */
  readonly #queries: Query[] = [];
  #resultBytes = 0;
  #large: Uint8Array[] = [];
  #largeType = 0;
  #isOpen = true;

  constructor(clock: Clock, server: LoggedInServer) {
    this.#clock = clock;
    this.#socket = server.socket;
    this.#splitter = new FrameSplitter(
      {
        frame: (type, chunk, start, end) => this.#frame(type, chunk.subarray(start, end)),
        largeStart: (type, prefix) => {
          this.#largeType = type;
          this.#large = [prefix];
        },
        largeBytes: (bytes, isLast) => {
          this.#large.push(bytes);
          if (!isLast) return;
          const frame = concatBytes(this.#large);
          this.#large = [];
          this.#frame(this.#largeType, frame);
        },
        violation: () => this.#violation("a message of an impossible length"),
      },
      RESULT_BYTES_MAX,
    );
    server.socket.setHandlers({
      data: (bytes) => this.#splitter.push(bytes),
      drain: () => {},
      close: (cause) => {
        this.#lose(lost(cause));
        this.onClosed?.();
      },
    });
    server.socket.resume();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  query(text: string, deadline: number): Promise<readonly TextRow[]> {
    if (!this.#isOpen) return Promise.reject(lost(undefined));
    if (text.includes("\0")) {
      const message = "a query can't hold a NUL";
      return Promise.reject(
        new PoolError("ERR_PROTOCOL_VIOLATION", message, { sqlState: "08P01" }),
      );
    }
    if (this.#queries.length > WAITING_MAX) {
      const message = "too many queries wait for the control connection";
      return Promise.reject(new PoolError("ERR_WAIT_QUEUE_FULL", message, { sqlState: "53300" }));
    }
    const { promise, resolve, reject } = Promise.withResolvers<readonly TextRow[]>();
    const query: Query = {
      text,
      rows: [],
      error: undefined,
      timer: this.#clock.schedule(deadline - this.#clock.now(), () => this.#expire(query)),
      resolve,
      reject,
    };
    this.#queries.push(query);
    if (this.#queries.length === 1) this.#send(query);
    return promise;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#lose(lost(undefined));
    this.#socket.write(TERMINATE_FRAME);
    this.#socket.end();
  }

  #send(query: Query): void {
    this.#resultBytes = 0;
    this.#socket.write(encodeQuery(query.text));
  }

  #expire(query: Query): void {
    const error = new PoolError("ERR_CANCELED", "the control query timed out", {
      sqlState: "57014",
    });
    const index = this.#queries.indexOf(query);
    this.#queries.splice(index, 1);
    query.reject(error);
    // It runs on the server and its answer may still come: nothing else can be asked here.
    if (index === 0) this.#abort(lost(error));
  }

  #frame(type: number, frame: Uint8Array): void {
    switch (type) {
      case Backend.NOTICE_RESPONSE:
      case Backend.NOTIFICATION_RESPONSE:
      case Backend.PARAMETER_STATUS:
        return;
      case Backend.ERROR_RESPONSE:
        this.#error(frame);
        return;
      default:
        break;
    }
    const query = this.#queries[0];
    if (query === undefined) {
      this.#violation("an answer to no query");
      return;
    }
    switch (type) {
      case Backend.ROW_DESCRIPTION:
      case Backend.COMMAND_COMPLETE:
      case Backend.EMPTY_QUERY_RESPONSE:
        return;
      case Backend.DATA_ROW:
        this.#row(query, frame);
        return;
      case Backend.READY_FOR_QUERY:
        this.#finish(query);
        return;
      default:
        // COPY included: the server would wait for data that nobody has.
        this.#violation("a message that no control query asks for");
    }
  }

  #row(query: Query, frame: Uint8Array): void {
    this.#resultBytes += frame.length;
    if (this.#resultBytes > RESULT_BYTES_MAX) {
      const message = "the result of a control query is too large";
      this.#abort(new PoolError("ERR_LIMIT_EXCEEDED", message, { sqlState: "54000" }));
      return;
    }
    const row = readTextRow(frame);
    if (row === undefined) this.#violation("a malformed DataRow");
    else query.rows.push(row);
  }

  #error(frame: Uint8Array): void {
    const fields = readErrorFields(frame);
    const error = new PoolError("ERR_CONNECTION_LOST", fields.get("M") ?? "unknown error", {
      sqlState: fields.get("C") ?? "XX000",
      severity: fields.get("V") === "FATAL" ? "FATAL" : "ERROR",
      serverError: frame.slice(),
    });
    const query = this.#queries[0];
    // Between queries it is a farewell, and the close behind it says the rest.
    if (query !== undefined) query.error = error;
  }

  #finish(query: Query): void {
    this.#queries.shift();
    query.timer.cancel();
    if (query.error === undefined) query.resolve(query.rows);
    else query.reject(query.error);
    const next = this.#queries[0];
    if (next !== undefined) this.#send(next);
  }

  #violation(what: string): void {
    const message = `the server broke the protocol: ${what}`;
    this.#abort(new PoolError("ERR_SERVER_PROTOCOL", message, { sqlState: "08P01" }));
  }

  #abort(error: PoolError): void {
    this.#lose(error);
    this.#socket.destroy();
  }

  #lose(error: PoolError): void {
    this.#isOpen = false;
    this.#splitter.suspend();
    for (const query of this.#queries.splice(0)) {
      query.timer.cancel();
      query.reject(query.error ?? error);
    }
  }
}

function lost(cause: unknown): PoolError {
  const message = "the control connection has closed";
  return new PoolError("ERR_CONNECTION_LOST", message, { sqlState: "08006", cause });
}
