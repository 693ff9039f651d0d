// One client's traffic: reads its messages, finds a server for each segment, holds the lease while anything is owed, and gives it back.
import type { BackendConnection, BackendHolder } from "../backend/backend-connection.ts";
import type { Position } from "../consistency/position.ts";
import { PoolError } from "../errors.ts";
import type { Route } from "../routing/server.ts";
import type { PinReason } from "../sql/statement-class.ts";
import { READY_IDLE_FRAME, encodeErrorResponse } from "../wire/backend-messages.ts";
import { Frontend, Status } from "../wire/message-types.ts";
import { writeParameters } from "./attach-parameters.ts";
import { ClientStatements } from "./client-statements.ts";
import { depart } from "./departure.ts";
import { Hold, InputGate } from "./input-gate.ts";
import { LeaseSeeker } from "./lease-seeker.ts";
import { lossAnswer } from "./loss-answer.ts";
import { Mint, type MintResult } from "./mint.ts";
import type { Operation } from "./operation.ts";
import { OperationReader, classOf, mayWrite } from "./operation-reader.ts";
import { OutputFlow } from "./output-flow.ts";
import { ReadPositions } from "./read-positions.ts";
import type { RelayClient, RelayEnvironment, RelayIdentity } from "./relay-environment.ts";
import { Segment } from "./segment.ts";
import { SegmentWriter } from "./segment-writer.ts";
import { judged } from "./statement-mode.ts";

/** Answers owed by one server past which the client is not read on: a deeper pipeline gains nothing. */
const PLAN_LENGTH_MAX = 8_192;
/** Bytes waiting for a server past which the client is not read on. */
const SERVER_QUEUE_MAX = 262_144;

/**
 * `open`: messages are taken. `skipping`: an error of ours was said with no server involved, so everything up to the next Sync is
 * dropped ("Extended Query"). `closed`: nothing is taken or said any more.
 */
type Mode = "open" | "skipping" | "closed";

/** A lease, and what it was given for. */
interface Lease {
  readonly backend: BackendConnection;
  readonly route: Route;
  readonly writer: SegmentWriter;
}

/**
 *   frame() ─► Operation ─► leased to the primary? ─yes─► SegmentWriter ─► server
 *                               │no
 *                               ▼
 *                            Segment ──Sync──► LeaseSeeker ─► #found() ─► SegmentWriter ─► server
 *
 *   server ─► ReplyReader ─► forward() ─► client;   settled() ─► release
 */
export class Relay implements BackendHolder {
  readonly #client: RelayClient;
  readonly #environment: RelayEnvironment;
  readonly #identity: RelayIdentity;
  readonly #statements: ClientStatements;
  readonly #reader: OperationReader;
  readonly #segment = new Segment();
  readonly #gate: InputGate;
  readonly #seeker: LeaseSeeker;
  readonly #mint: Mint;
  readonly #flow: OutputFlow;
  readonly #positions: ReadPositions;
  #mode: Mode = "open";
  #lease: Lease | undefined;
  /** The server of the latest lease, for the caller to be told. */
  #latest: Lease | undefined;
  #pinned: PinReason | "session_mode" | undefined;
  /** Something that may write went to the primary since the last acknowledgement. */
  #mayHaveWritten = false;
  /** The rest of a large message is sent on behind its beginning, or dropped. */
  #large: "sent" | "dropped" | undefined;
  #isFlushAsked = false;
  /** A segment waits until the replica has answered what it owes. */
  #isDispatchDue = false;

  constructor(
    client: RelayClient,
    environment: RelayEnvironment,
    identity: RelayIdentity,
    positions: readonly Position[],
  ) {
    this.#client = client;
    this.#environment = environment;
    this.#identity = identity;
    this.#statements = new ClientStatements(environment.registry);
    this.#reader = new OperationReader(environment.classifier, this.#statements);
    this.#gate = new InputGate(client);
    this.#seeker = new LeaseSeeker(environment, identity);
    this.#mint = new Mint(environment, identity);
    this.#positions = new ReadPositions(identity.cluster, positions);
    this.#flow = new OutputFlow(client, environment, {
      blocked: () => {
        this.#gate.hold(Hold.CLIENT_QUEUE);
        this.#lease?.backend.pause();
      },
      stuck: () => this.#end(undefined),
    });
  }

  /** Who served the latest segment. */
  get servedBy(): { readonly role: "primary" | "replica"; readonly server: string } | undefined {
    const latest = this.#latest;
    if (latest === undefined) return undefined;
    return { role: latest.route.role, server: latest.backend.server.name };
  }

  get pinned(): PinReason | "session_mode" | undefined {
    return this.#pinned;
  }

  /** Holds a connection or waits for one. */
  get isBusy(): boolean {
    return this.#lease !== undefined || this.#seeker.isSeeking || this.#isDispatchDue;
  }

  /** Asks for the position behind the next Sync. `result` is called once everything sent so far is answered, or soon after. */
  wantPosition(result: MintResult): void {
    this.#mint.want(result);
  }

  // From the client.

  /** One whole message. */
  frame(type: number, bytes: Uint8Array): void {
    if (this.#mode === "closed") return;
    if (type === Frontend.TERMINATE) {
      this.leave(true);
    } else if (this.#mode === "skipping") {
      if (type !== Frontend.SYNC) return;
      this.#mode = "open";
      this.#client.forward(READY_IDLE_FRAME);
    } else {
      this.#takeRead(type, this.#reader.read(type, bytes));
    }
  }

  /** The beginning of a message too large to keep; the rest comes by `largeBytes`. */
  largeStart(type: number, prefix: Uint8Array): void {
    this.#large = "dropped";
    if (this.#mode !== "open") return;
    const operation = this.#reader.readLarge(type, prefix);
    const isTaken = this.#takeRead(type, operation);
    if (!isTaken || operation?.kind === "fail") return;
    this.#large = "sent";
    if (!this.#isDirect) this.#dispatch();
    this.endOfInput();
  }

  largeBytes(bytes: Uint8Array, isLast: boolean): void {
    const lease = this.#lease;
    if (this.#large === "sent" && lease !== undefined) {
      lease.writer.raw(bytes);
      this.#flush(lease);
    }
    if (!isLast) return;
    this.#large = undefined;
    if (lease !== undefined && lease.backend.plan.length === 0) this.settled();
  }

  /** Everything that was read in one pass has been delivered: send what it came to. */
  endOfInput(): void {
    if (this.#isFlushAsked) {
      this.#isFlushAsked = false;
      if (!this.#segment.isEmpty && !this.#seeker.isSeeking) this.#dispatch();
    }
    if (this.#lease !== undefined) this.#flush(this.#lease);
  }

  /** The client has taken all its answers. */
  drained(): void {
    if (!this.#flow.isBlocked) return;
    this.#flow.drained();
    this.#lease?.backend.resume();
    if (this.#lease?.backend.plan.length === 0) this.#releaseIfQuiet();
    this.#gate.lift(Hold.CLIENT_QUEUE);
  }

  /** A cancel request with this session's key. Whatever it does, the session goes on. */
  cancel(): void {
    const lease = this.#lease;
    if (this.#seeker.isSeeking || this.#isDispatchDue) {
      this.#seeker.stop();
      this.#isDispatchDue = false;
      this.#refuse(
        new PoolError("ERR_CANCELED", "canceling statement due to user request", {
          sqlState: "57014",
        }),
      );
    } else if (lease !== undefined && lease.backend.plan.length > 0) {
      const { clock, reportBug } = this.#environment;
      lease.backend
        .cancel(clock.now() + this.#identity.profile.cancelWaitTimeoutMs)
        .catch((error: unknown) => {
          // Not delivered: the statement runs on, as it does when PostgreSQL drops a cancel request.
          if (!(error instanceof PoolError)) reportBug(error);
        });
    }
  }

  /** The client is gone, in order (Terminate) or not. */
  leave(isOrderly: boolean): void {
    if (this.#mode === "closed") return;
    this.#mode = "closed";
    this.#flow.stop();
    this.#seeker.stop();
    this.#segment.clear();
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease !== undefined) {
      if (this.#large === undefined) lease.writer.flush();
      depart(this.#environment, lease.backend, {
        isMidMessage: this.#large === "sent",
        cancelsRunning: !isOrderly,
        needsReset: this.#pinned !== undefined,
      });
    }
    this.#statements.clear();
  }

  // From the server.

  forward(bytes: Uint8Array): void {
    this.#client.forward(bytes);
    this.#flow.check();
  }

  writable(): void {
    this.#gate.lift(Hold.SERVER_QUEUE);
  }

  progressed(): void {
    const lease = this.#lease;
    if (lease !== undefined && lease.backend.plan.length < PLAN_LENGTH_MAX / 2) {
      this.#gate.lift(Hold.PLAN);
    }
  }

  settled(): void {
    const lease = this.#lease;
    if (lease === undefined) return;
    const { backend, route } = lease;
    if (backend.status === Status.IDLE && !backend.isUnsynced) {
      const wrote = this.#mayHaveWritten && route.role === "primary";
      this.#mayHaveWritten = false;
      if (wrote) this.#positions.written();
      this.#mint.settled(wrote);
    }
    this.#releaseIfQuiet();
    this.#gate.lift(Hold.PLAN);
  }

  lost(error: PoolError): void {
    const lease = this.#lease;
    if (lease === undefined) return;
    this.#environment.counters.lostBackends++;
    this.#lease = undefined;
    const answer = lossAnswer(lease.backend, error, this.#pinned !== undefined);
    this.#environment.pools.discard(lease.backend);
    if (this.#large === "sent") this.#large = "dropped";
    this.#mayHaveWritten = false;
    if (lease.route.role === "primary") this.#positions.written();
    this.#mint.lost();
    if (answer.isFatal) {
      this.#end(answer.bytes);
      return;
    }
    if (answer.isSkipping) this.#mode = "skipping";
    if (answer.bytes !== undefined) this.#client.forward(answer.bytes);
    this.#dispatchIfDue();
    this.#gate.lift(Hold.SERVER_QUEUE);
    this.#gate.lift(Hold.PLAN);
  }

  // Inside.

  get #isDirect(): boolean {
    return this.#lease?.route.role === "primary";
  }

  /** True when the operation was taken, to be sent now or with its segment. */
  #takeRead(type: number, operation: Operation | undefined): boolean {
    if (operation === undefined) {
      this.#end(
        encodeErrorResponse({
          severity: "FATAL",
          sqlState: "08P01",
          message: `invalid frontend message type ${type}`,
        }),
      );
      return false;
    }
    return this.#take(judged(operation, this.#identity.profile.poolMode));
  }

  #take(operation: Operation): boolean {
    const lease = this.#lease;
    if (lease === undefined && (operation.kind === "copy_data" || operation.kind === "copy_end")) {
      // What is left of a copy that has failed: the server would drop it too ("COPY Operations").
      return false;
    }
    if (lease !== undefined && this.#isDirect) {
      this.#write(lease, operation);
      return true;
    }
    this.#segment.add(operation);
    if (this.#segment.isWhole || this.#segment.isFull) this.#dispatch();
    else if (operation.kind === "flush") this.#isFlushAsked = true;
    return true;
  }

  /** Finds a server for what was gathered. */
  #dispatch(): void {
    const lease = this.#lease;
    if (lease !== undefined) {
      this.#dispatchBehind(lease);
      return;
    }
    if (this.#segment.isSyncOnly) {
      this.#segment.clear();
      this.#client.forward(READY_IDLE_FRAME);
      return;
    }
    const positions = this.#readablePositions();
    this.#seeker.seek({
      access: positions === undefined ? "primary" : "read",
      positions: positions ?? [],
      found: (backend, route) => this.#found(backend, route),
      failed: (error) => this.#refuse(error),
    });
    if (this.#seeker.isSeeking) this.#gate.hold(Hold.LEASE);
  }

  /** A replica still owes answers: reads may follow there, anything else waits, so that no answer overtakes another. */
  #dispatchBehind(lease: Lease): void {
    if (this.#segment.isRead && this.#readablePositions() !== undefined) {
      this.#writeSegment(lease);
      return;
    }
    this.#isDispatchDue = true;
    this.#gate.hold(Hold.LEASE);
  }

  /** Positions that a replica must have reached to serve this segment; undefined when only the primary may. */
  #readablePositions(): readonly Position[] | undefined {
    const { profile } = this.#identity;
    const isPortable = this.#pinned === undefined && profile.poolMode !== "session";
    if (!this.#segment.isRead || !isPortable || profile.consistency === "primary") return undefined;
    return profile.consistency === "eventual" ? this.#positions.known : this.#positions.current();
  }

  #found(backend: BackendConnection, route: Route): void {
    const lease = { backend, route, writer: new SegmentWriter(backend, this.#statements) };
    this.#lease = lease;
    this.#latest = lease;
    backend.attach(this);
    if (this.#identity.profile.poolMode === "session") this.#pin("session_mode");
    writeParameters(backend, lease.writer, this.#identity.parameters);
    this.#writeSegment(lease);
    this.#gate.lift(Hold.LEASE);
  }

  #writeSegment(lease: Lease): void {
    for (const operation of this.#segment.take()) this.#write(lease, operation);
    this.#flush(lease);
  }

  #write(lease: Lease, operation: Operation): void {
    const statementClass = classOf(operation);
    if (statementClass?.pin !== undefined) this.#pin(statementClass.pin);
    if (mayWrite(operation)) this.#mayHaveWritten = true;
    const isProbed =
      operation.kind === "sync" &&
      this.#mayHaveWritten &&
      this.#mint.sync(lease.writer, lease.backend);
    if (!isProbed) lease.writer.write(operation);
  }

  #flush({ backend, writer }: Lease): void {
    writer.flush();
    backend.answerLocally();
    if (backend.plan.length > PLAN_LENGTH_MAX) this.#gate.hold(Hold.PLAN);
    if (backend.queuedBytes > SERVER_QUEUE_MAX) this.#gate.hold(Hold.SERVER_QUEUE);
    // All of it was answered by us.
    if (backend.plan.length === 0 && this.#large === undefined) this.#releaseIfQuiet();
  }

  #pin(reason: PinReason | "session_mode"): void {
    if (this.#pinned !== undefined) return;
    this.#pinned = reason;
    const { pins } = this.#environment.counters;
    pins.set(reason, (pins.get(reason) ?? 0) + 1);
  }

  #releaseIfQuiet(): void {
    const lease = this.#lease;
    if (lease === undefined) return;
    const { backend } = lease;
    if (backend.hasCancelInFlight) {
      backend.whenCancelsDone(() => {
        if (this.#lease === lease && backend.plan.length === 0) this.#releaseIfQuiet();
      });
      return;
    }
    const isKept = this.#pinned !== undefined || this.#large === "sent" || this.#flow.isBlocked;
    if (!backend.isQuiet || isKept) return;
    this.#lease = undefined;
    backend.detach();
    if (this.#mint.isServerSuspect) this.#environment.pools.discard(backend);
    else this.#environment.pools.release(backend);
    this.#dispatchIfDue();
  }

  #dispatchIfDue(): void {
    if (!this.#isDispatchDue) return;
    this.#isDispatchDue = false;
    this.#dispatch();
    if (!this.#seeker.isSeeking) this.#gate.lift(Hold.LEASE);
  }

  /** No server could be had for the segment: an error to this request, and the session goes on. */
  #refuse(error: PoolError): void {
    const isWhole = this.#segment.isWhole;
    this.#segment.undo(this.#statements);
    if (this.#large === "sent") this.#large = "dropped";
    const bytes = encodeErrorResponse(error);
    if (error.severity === "FATAL") {
      this.#end(bytes);
      return;
    }
    this.#client.forward(bytes);
    if (isWhole) this.#client.forward(READY_IDLE_FRAME);
    else this.#mode = "skipping";
    this.#mint.settled(false);
    this.#gate.lift(Hold.LEASE);
  }

  #end(error: Uint8Array | undefined): void {
    if (this.#mode === "closed") return;
    this.leave(false);
    this.#client.abort(error);
  }
}
