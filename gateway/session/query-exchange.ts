// The client of a relay that is not a socket: sends prepared messages and gathers the answers until all is said, refused, lost or abandoned.
import type { Position } from "#pool/consistency/position.ts";
import { CLIENT_QUEUE_MAX } from "#pool/session/output-flow.ts";
import { Relay } from "#pool/session/relay.ts";
import type {
  RelayClient,
  RelayEnvironment,
  RelayIdentity,
} from "#pool/session/relay-environment.ts";
import type { Timer } from "#pool/time/clock.ts";
import { readErrorFields } from "#pool/wire/backend-messages.ts";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import { SYNC_FRAME } from "#pool/wire/frontend-messages.ts";
import { Frontend, Status } from "#pool/wire/message-types.ts";
import type { JsonBytes } from "./json-bytes.ts";
import { ResultCollector, type StatementResult } from "./result-collector.ts";
import type { RowFormat } from "./result-json.ts";
import type { ResultShapes } from "./result-shape.ts";
import { type ServerError, ownError, serverErrorOf } from "./server-error.ts";
import type { SharedTimer } from "./shared-timer.ts";
import { Turn } from "./turn.ts";

/** Who waits for the answer: a Request. Its signal is made when it is first asked for, which costs more than many a query. */
export interface QueryClient {
  /** The client has gone away. */
  readonly signal: AbortSignal;
}

export interface QueryExchangeOptions {
  readonly environment: RelayEnvironment;
  readonly identity: RelayIdentity;
  /** What a replica must have replayed. */
  readonly positions: readonly Position[];
  readonly client: QueryClient;
  /** Its delay is how long a client that has gone goes unnoticed. */
  readonly clientWatch: SharedTimer;
  /** For one message to the server. */
  readonly frameBytesMax: number;
  readonly responseBytesMax: number;
  readonly shapes: ResultShapes;
  /** One for each statement, in order; undefined for one whose result is not part of the answer. */
  readonly formats: readonly (RowFormat | undefined)[];
  /** What stands before the first result. */
  readonly opening: string;
}

export interface ExchangeAnswer {
  readonly results: readonly StatementResult[];
  /** The opening and the results, parted by commas. */
  readonly body: JsonBytes;
  /** The first error. */
  readonly error: ServerError | undefined;
  /** Covers what the exchange has committed, as far as it may have written. */
  readonly position: Position | undefined;
  /** "primary" or "replica:NAME". */
  readonly servedBy: string | undefined;
}

/** The pool's own limit for a message that it keeps whole; the answer to be shown may have a lower one. */
const REPLY_BYTES_MIN = 1_048_576;

/** What one answer may have when the memory for all is used up: as much as a socket's client may leave unread. */
const FREE_BYTES = CLIENT_QUEUE_MAX;

/** The pool asks its oracle for at most 2 s; where the connection is lost it may not ask at all. */
const POSITION_TIMEOUT_MS = 2_500;

/**
 *   segments ─► FrameSplitter ─► Relay ─► server ─► FrameSplitter ─► ResultCollector
 *               (suspended by the relay)            (at any cut)
 */
export class QueryExchange implements RelayClient {
  /** Nothing waits here: what the relay forwards is taken at once. */
  readonly queuedBytes = 0;
  readonly #options: QueryExchangeOptions;
  readonly #relay: Relay;
  readonly #outbound: FrameSplitter;
  readonly #inbound: FrameSplitter;
  readonly #collector: ResultCollector;
  readonly #finished = Promise.withResolvers<void>();
  #messages: readonly Uint8Array[] = [];
  #nextMessage = 0;
  /** `waits`: until the relay takes input again. `rests`: until the next turn. */
  #feeding: "runs" | "waits" | "rests" = "runs";
  #syncsLeft = 0;
  #readyLeft = 0;
  /** Our part of the memory that all unread answers share. */
  #chargedBytes = 0;
  #error: ServerError | undefined;
  #position: Position | undefined;
  #positionState: "not_asked" | "asked" | "known" = "not_asked";
  #positionTimer: Timer | undefined;
  /** `answered`: only the position may be missing. `over`: nothing that still comes counts. */
  #state: "running" | "answered" | "over" = "running";

  constructor(options: QueryExchangeOptions) {
    const { environment, identity, positions, responseBytesMax: bytesMax } = options;
    const { shapes, formats, opening } = options;
    this.#options = options;
    this.#relay = new Relay(this, environment, identity, positions);
    this.#collector = new ResultCollector(
      { shapes, formats, opening, bytesMax },
      {
        ready: (status) => this.#ready(status),
        kept: (bytes) => this.#charge(bytes),
        refused: (error) => this.#giveUp(error),
      },
    );
    this.#inbound = new FrameSplitter(this.#collector, Math.max(bytesMax, REPLY_BYTES_MIN));
    this.#outbound = new FrameSplitter(
      {
        frame: (type, chunk, start, end) => this.#send(type, chunk, start, end),
        largeStart: (type, prefix) => {
          if (this.#state === "running") this.#relay.largeStart(type, prefix);
        },
        largeBytes: (bytes, isLast) => {
          if (this.#state === "running") this.#relay.largeBytes(bytes, isLast);
        },
        violation: () => this.#giveUp(messageTooLong(options.frameBytesMax)),
      },
      options.frameBytesMax,
    );
  }

  /** Each segment's messages are sent with a Sync behind them, all in one go unless reading them takes long. Once only. Errors are data. */
  async run(segments: readonly (readonly Uint8Array[])[]): Promise<ExchangeAnswer> {
    const { clientWatch } = this.#options;
    this.#syncsLeft = segments.length;
    this.#readyLeft = segments.length;
    this.#messages = segments.flatMap((messages) => [...messages, SYNC_FRAME]);
    const watch = clientWatch.schedule(() => this.#watchClient());
    try {
      this.#feed();
      await this.#finished.promise;
    } finally {
      clientWatch.cancel(watch);
      this.#positionTimer?.cancel();
      this.#options.environment.output.usedBytes -= this.#chargedBytes;
      // Also ends a transaction that a lone BEGIN has left open.
      this.#relay.leave(true);
    }
    const served = this.#relay.servedBy;
    return {
      results: this.#collector.results,
      body: this.#collector.body,
      error: this.#collector.error ?? this.#error,
      position: this.#position,
      servedBy: served?.role === "replica" ? `replica:${served.server}` : served?.role,
    };
  }

  // From the relay.

  forward(bytes: Uint8Array): void {
    if (this.#state === "running") this.#inbound.push(bytes);
  }

  suspendInput(): void {
    this.#outbound.suspend();
  }

  resumeInput(): void {
    this.#outbound.resume();
    if (this.#feeding === "waits") this.#feed();
    else this.#relay.endOfInput();
  }

  abort(error: Uint8Array | undefined): void {
    if (this.#state !== "running") return;
    this.#error = error === undefined ? connectionLost() : serverErrorOf(readErrorFields(error));
    // What was sent may have been committed, and then a position may still come.
    this.#answered();
  }

  /** The listener goes with the request; once all is said it does nothing. */
  #watchClient(): void {
    const { signal } = this.#options.client;
    if (signal.aborted) this.#giveUp(abandoned());
    else signal.addEventListener("abort", () => this.#giveUp(abandoned()));
  }

  /** Gives the relay its messages, as long as it takes them and the turn lasts. */
  #feed(): void {
    this.#feeding = "runs";
    const turn = new Turn(this.#options.environment.clock);
    while (this.#state === "running" && this.#nextMessage < this.#messages.length) {
      if (this.#outbound.isSuspended) {
        this.#feeding = "waits";
        break;
      }
      if (this.#nextMessage > 0 && turn.isOver) {
        this.#feeding = "rests";
        turn
          .pause()
          .then(() => this.#feed())
          .catch(this.#finished.reject);
        break;
      }
      const message = this.#messages[this.#nextMessage++];
      if (message !== undefined) this.#outbound.push(message);
    }
    this.#relay.endOfInput();
  }

  #send(type: number, chunk: Uint8Array, start: number, end: number): void {
    if (this.#state !== "running") return;
    // An earlier Sync ends inside the transaction, where the position would not cover the commit.
    if (type === Frontend.SYNC && --this.#syncsLeft === 0) {
      this.#positionState = "asked";
      this.#relay.wantPosition((position) => {
        this.#position = position;
        this.#positionState = "known";
        if (this.#state === "answered") this.#finish();
      });
    }
    this.#relay.frame(type, chunk, start, end);
  }

  #ready(status: number): void {
    this.#readyLeft--;
    const hasFailed = this.#collector.error !== undefined && status === Status.IDLE;
    // A transaction that never began has no COMMIT to wait for.
    if (this.#readyLeft === 0 || hasFailed) this.#answered();
  }

  #answered(): void {
    this.#state = "answered";
    if (this.#positionState !== "asked") {
      this.#finish();
      return;
    }
    const { clock } = this.#options.environment;
    this.#positionTimer = clock.schedule(POSITION_TIMEOUT_MS, () => this.#finish());
  }

  /** An answer that must be whole can't wait for others to be read, so over the cap it fails; a small one may pass. */
  #charge(bytes: number): void {
    if (this.#state === "over") return;
    const { output } = this.#options.environment;
    this.#chargedBytes += bytes;
    output.usedBytes += bytes;
    if (output.usedBytes > output.bytesMax && this.#chargedBytes > FREE_BYTES) {
      this.#giveUp(outOfMemory(output.bytesMax));
    }
  }

  /** Cancels what runs. */
  #giveUp(error: ServerError): void {
    if (this.#state === "over") return;
    this.#error ??= error;
    this.#finish();
    this.#relay.leave(false);
  }

  #finish(): void {
    this.#state = "over";
    this.#finished.resolve();
  }
}

function abandoned(): ServerError {
  return ownError("57014", "canceling statement because the client has closed the request");
}

function connectionLost(): ServerError {
  return ownError("08006", "the connection to the server was lost", { severity: "FATAL" });
}

function outOfMemory(bytesMax: number): ServerError {
  return ownError(
    "53200",
    `unread answers of all clients exceed max_client_buffer, ${bytesMax} bytes`,
    {
      hint: "Try again, or ask for fewer rows.",
    },
  );
}

function messageTooLong(bytesMax: number): ServerError {
  return ownError(
    "54000",
    `a statement or its parameters exceed max_packet_size, ${bytesMax} bytes`,
  );
}
