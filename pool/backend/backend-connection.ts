// One logged-in connection to a server: its socket, its reply plan and what is known of its session.
import type { PooledConnection } from "../connections/pooled-connection.ts";
import type { StartupProfile } from "../connections/startup-profile.ts";
import { PoolError } from "../errors.ts";
import { Expect, Fate, ReplyPlan } from "../exchange/reply-plan.ts";
import { type ReplyObserver, ReplyReader, type ReplySink } from "../exchange/reply-reader.ts";
import type { Server } from "../routing/server.ts";
import { SERVER_NAME_PREFIX } from "../session/statement-registry.ts";
import type { Clock } from "../time/clock.ts";
import { releaseBytes } from "../transport/release-bytes.ts";
import type { ByteSocket } from "../transport/socket.ts";
import { readCommandTag, readErrorFields, readParameterStatus } from "../wire/backend-messages.ts";
import { TERMINATE_FRAME, encodeQuery } from "../wire/frontend-messages.ts";
import { HEADER_BYTES, Status } from "../wire/message-types.ts";
import { BackendStatements } from "./backend-statements.ts";
import { OutputBatch } from "./output-batch.ts";

/** Whoever has the lease. */
export interface BackendHolder extends ReplySink {
  /** A chunk was read, or a cancel request came to its end, and nothing is owed. The holder may send, release or close from here. */
  settled(): void;
  /** A chunk was read and something is still owed. */
  progressed?(): void;
  /** The connection is gone; the lease ends with this call. */
  lost(error: PoolError): void;
  /** The queue towards the server is empty again. */
  writable(): void;
  /** The server waits for copy data, and the copy's end has not been sent. */
  copyIn?(): void;
  /** DISCARD ALL or DEALLOCATE ALL was done. */
  statementsDropped?(): void;
}

/** What the transaction status will be when everything that was sent has been done; the status itself once that is so. */
export const Forecast = {
  IDLE: 0,
  /** A copy may be going on; nothing of ours may come between. */
  COPY: 1,
  /** A transaction block may be open. */
  OPEN: 2,
} as const;

export interface BackendConnectionOptions {
  readonly socket: ByteSocket;
  readonly clock: Clock;
  readonly server: Server;
  readonly profile: StartupProfile;
  readonly principal: string;
  readonly startupOptions: string;
  readonly processId: number;
  readonly secretKey: Uint8Array;
  /** ParameterStatus as reported since login. */
  readonly parameters: Map<string, string>;
  /** Sends a cancel request and resolves once the server has closed that connection. */
  readonly sendCancel: (deadline: number) => Promise<void>;
}

/** Equal to no set of startup parameters, so that the next client's are put in force whatever they are. */
export const UNKNOWN_PARAMETERS = "unknown";

/** DISCARD ALL leaves the seed of random() as it is: whoever set it would know what the next principal draws. */
const RESEED =
  "SELECT pg_catalog.setseed(pg_catalog.hashtext(pg_catalog.gen_random_uuid()::text) / 2147483648.0)";

/** Cancel requests on their way at a time for one connection. */
const CANCELS_MAX = 4;

export class BackendConnection implements PooledConnection, ReplyObserver {
  readonly server: Server;
  readonly profile: StartupProfile;
  readonly startupOptions: string;
  readonly processId: number;
  readonly createdAt: number;
  readonly plan = new ReplyPlan();
  readonly statements = new BackendStatements();
  /** What the holder has written and not sent. */
  readonly batch = new OutputBatch();
  readonly parameters: Map<string, string>;
  onClosed: (() => void) | undefined;
  /** Transaction status of the last ReadyForQuery. */
  status: number = Status.IDLE;
  forecast: number = Forecast.IDLE;
  /** The server reads copy data now; a Sync would be ignored. */
  isCopyIn = false;
  /** Messages of the extended protocol were sent that no Sync has followed. */
  hasUnsynced = false;
  /** Never to be lent again: a cancel may still be on its way to it, or it has said what no healthy server says. */
  isTainted = false;
  /** Which client startup parameters are in force: the fingerprint of their set, empty for the profile's own. */
  appliedParameters = "";
  /** A RESET ALL was sent: it undoes the applied set, which to its client are the session's defaults. */
  hasResetAll = false;
  /** Names that the applied set changed. */
  appliedNames: readonly string[] = [];
  /** The probe's named statement exists, or its Parse is on its way. */
  hasProbe = false;
  /** Counts segments, so that messages of one can be told from those of the next. */
  segment = 0;

  readonly #socket: ByteSocket;
  readonly #reader: ReplyReader;
  readonly #sendCancel: (deadline: number) => Promise<void>;
  readonly #clock: Clock;
  #principal: string;
  #holder: BackendHolder | undefined;
  #isOpen = true;
  #cancels = 0;

  constructor(options: BackendConnectionOptions) {
    this.server = options.server;
    this.profile = options.profile;
    this.startupOptions = options.startupOptions;
    this.processId = options.processId;
    this.parameters = options.parameters;
    this.createdAt = options.clock.now();
    this.#clock = options.clock;
    this.#principal = options.principal;
    this.#socket = options.socket;
    this.#sendCancel = options.sendCancel;
    this.#reader = new ReplyReader(this.plan, this);
    options.socket.setHandlers({
      data: (bytes) => this.#data(bytes),
      drain: () => this.#holder?.writable(),
      close: (error) => this.#gone(this.#lossOf(error)),
    });
  }

  get principal(): string {
    return this.#principal;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The server waits for a Sync before it is ready. */
  get isUnsynced(): boolean {
    return this.hasUnsynced || this.plan.isSkipping;
  }

  /** False only when no transaction block is open, nor can be by anything that was sent. */
  get mayBeInTransaction(): boolean {
    return this.status !== Status.IDLE || this.forecast === Forecast.OPEN;
  }

  get queuedBytes(): number {
    return this.#socket.queuedBytes;
  }

  /** Idle, nothing owed in either direction: fit to serve somebody else once it is reset. */
  get isQuiet(): boolean {
    return (
      this.#isOpen &&
      this.plan.length === 0 &&
      this.status === Status.IDLE &&
      !this.isUnsynced &&
      !this.#reader.hasPartialFrame &&
      this.#cancels === 0
    );
  }

  /** The client has been given part of a message whose rest has not come. */
  get isMidForward(): boolean {
    return this.#reader.isMidForward;
  }

  /** The connection must be open: a holder of a closed one would never hear of it. */
  attach(holder: BackendHolder): void {
    if (!this.#isOpen) throw new Error("a closed backend connection was attached to");
    this.#holder = holder;
    this.#reader.sink = holder;
  }

  detach(): void {
    this.#holder = undefined;
    this.#reader.sink = undefined;
    this.#socket.resume();
  }

  send(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** To be called after LOCAL entries were added: says them if their turn has come. */
  answerLocally(): void {
    this.#reader.answerLocally();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /**
   * Sends a cancel request for whatever runs now. Until the server has closed that connection this one is not quiet, and if that is
   * never seen it is tainted: a cancel that arrives late can't hit the next holder's query.
   *
   * @throws PoolError when it can't be known that the request was delivered.
   */
  async cancel(deadline: number): Promise<void> {
    // Each is a socket to the server; a client that asks more often gains nothing.
    if (this.#cancels >= CANCELS_MAX) return;
    this.#cancels++;
    try {
      await this.#sendCancel(deadline);
    } catch (error) {
      this.isTainted = true;
      throw error;
    } finally {
      this.#cancels--;
      if (this.#cancels === 0 && this.#isOpen && this.plan.length === 0) this.#holder?.settled();
    }
  }

  get hasCancelInFlight(): boolean {
    return this.#cancels > 0;
  }

  /**
   * Runs one statement text of ours by the simple protocol, its answers hidden. The connection must be settled and attached to
   * nobody. A deadline that passes closes it, for its state is unknown then.
   *
   * @throws PoolError with the server's SQLSTATE, or 57014 at the deadline, or 08006 when the connection is lost.
   */
  async run(text: string, deadline: number): Promise<void> {
    if (!this.#isOpen) throw connectionClosed();
    await new Promise<void>((resolve, reject) => {
      let failure: PoolError | undefined;
      const timer = this.#clock.schedule(Math.max(0, deadline - this.#clock.now()), () => {
        failure = new PoolError("ERR_CANCELED", `${this.server.name} did not answer in time`, {
          sqlState: "57014",
        });
        this.destroy(failure);
      });
      const finish = (error: PoolError | undefined): void => {
        timer.cancel();
        this.detach();
        if (error === undefined) resolve();
        else reject(failure ?? error);
      };
      this.attach({
        forward: () => {},
        writable: () => {},
        settled: () => finish(failure),
        lost: finish,
      });
      this.statements.unnamedDropped();
      this.plan.expect(Expect.QUERY, Fate.HIDE_ALL, {
        failed: (frame) => {
          const fields = frame === undefined ? undefined : readErrorFields(frame);
          failure = new PoolError(
            "ERR_CONNECTION_LOST",
            fields?.get("M") ?? "the statement was not answered",
            { sqlState: fields?.get("C") ?? "08006" },
          );
        },
      });
      this.send(encodeQuery(text));
    });
  }

  async rekey(principal: string, deadline: number): Promise<void> {
    try {
      await this.run("DISCARD ALL", deadline);
      await this.run(RESEED, deadline);
    } catch (error) {
      this.close();
      throw error;
    }
    this.#principal = principal;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#socket.write(TERMINATE_FRAME);
    this.#socket.end();
    this.#gone(connectionClosed());
  }

  /** Closes at once, without Terminate: the byte stream is in no state to take one. */
  destroy(error: PoolError): void {
    if (!this.#isOpen) return;
    this.#socket.destroy();
    this.#gone(error);
  }

  #data(bytes: Uint8Array): void {
    if (!this.#isOpen) return;
    this.#reader.receive(bytes);
    releaseBytes(bytes);
    if (!this.#isOpen) return;
    if (this.plan.length > 0) {
      this.#holder?.progressed?.();
      return;
    }
    // Before the Sync the status is still that of the transaction before.
    const isIdle = this.status === Status.IDLE && !this.isUnsynced;
    this.forecast = isIdle ? Forecast.IDLE : Forecast.OPEN;
    this.#holder?.settled();
  }

  #lossOf(cause: Error | undefined): PoolError {
    return new PoolError("ERR_CONNECTION_LOST", "server closed the connection unexpectedly", {
      sqlState: "08006",
      cause,
    });
  }

  #gone(error: PoolError): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#reader.stop();
    const holder = this.#holder;
    this.#holder = undefined;
    const onClosed = this.onClosed;
    this.onClosed = undefined;
    onClosed?.();
    holder?.lost(error);
    this.plan.abandon();
  }

  // ReplyObserver.

  readyForQuery(status: number): void {
    this.status = status;
    this.isCopyIn = false;
  }

  parameterStatus(frame: Uint8Array): void {
    const pair = readParameterStatus(frame);
    if (pair !== undefined) this.parameters.set(pair[0], pair[1]);
  }

  commandComplete(chunk: Uint8Array, start: number, end: number): void {
    this.isCopyIn = false;
    // Every tag comes by here: only those that begin with D or R are worth reading.
    const letter = chunk[start + HEADER_BYTES];
    if (letter !== LETTER_D && letter !== LETTER_R) return;
    const tag = readCommandTag(chunk.subarray(start, end));
    if (tag === "RESET" && this.hasResetAll) this.appliedParameters = UNKNOWN_PARAMETERS;
    if (tag !== "DISCARD ALL" && tag !== "DEALLOCATE ALL") return;
    this.statements.clear();
    this.hasProbe = false;
    if (tag === "DISCARD ALL") {
      this.appliedParameters = "";
      this.appliedNames = [];
    }
    this.#holder?.statementsDropped?.();
  }

  copyIn(isOpen: boolean): void {
    this.isCopyIn = isOpen;
    // A Sync that was sent behind the Execute was ignored: another one is due when the copy has ended.
    if (this.plan.headKind === Expect.EXECUTE && !this.plan.hasSync) this.hasUnsynced = true;
    if (isOpen) this.#holder?.copyIn?.();
  }

  errorResponse(prefix: Uint8Array): void {
    this.isCopyIn = false;
    const fields = readErrorFields(prefix);
    const code = fields.get("C");
    // "cached plan must not change result type", whatever its language: without a new Parse it would come for ever. So would "does not
    // exist" for a statement that a function has deallocated unseen.
    const isCacheStale = code === "0A000" && fields.get("R") === "RevalidateCachedQuery";
    const isOursGone = code === "26000" && fields.get("M")?.includes(SERVER_NAME_PREFIX) === true;
    if (isCacheStale || isOursGone) this.statements.markStale();
  }

  /** The server is closing: nobody may be given this connection any more, nor be told twice. */
  fatalError(prefix: Uint8Array): void {
    const fields = readErrorFields(prefix);
    const message = fields.get("M") ?? "server closed the connection";
    const sqlState = fields.get("C") ?? "08006";
    this.destroy(
      new PoolError("ERR_CONNECTION_LOST", message, { sqlState, serverError: prefix.slice() }),
    );
  }

  violation(reason: string): void {
    this.destroy(new PoolError("ERR_SERVER_PROTOCOL", reason, { sqlState: "08P01" }));
  }
}

const LETTER_D = 0x44;
const LETTER_R = 0x52;

function connectionClosed(): PoolError {
  return new PoolError("ERR_CONNECTION_LOST", "connection closed", { sqlState: "08006" });
}
