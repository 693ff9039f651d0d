// One client's traffic: reads its messages, finds a server for each segment, holds the lease while anything is owed, and gives it back.
import type { BackendConnection, BackendHolder } from "../backend/backend-connection.ts";
import type { Position } from "../consistency/position.ts";
import type { PoolError } from "../errors.ts";
import type { RouteRequest } from "../routing/route-request.ts";
import type { Route, Server } from "../routing/server.ts";
import type { PinReason } from "../sql/statement-class.ts";
import { READY_IDLE_FRAME, encodeErrorResponse } from "../wire/backend-messages.ts";
import { Status } from "../wire/message-types.ts";
import { ClientStatements } from "./client-statements.ts";
import { depart, giveBack } from "./departure.ts";
import { Hold, InputGate } from "./input-gate.ts";
import { Intake, type IntakeTarget } from "./intake.ts";
import { Lease } from "./lease.ts";
import { type LeaseOwner, LeaseSeeker, canceledByUser } from "./lease-seeker.ts";
import { lossAnswer } from "./loss-answer.ts";
import { Mint, type MintResult } from "./mint.ts";
import type { Operation } from "./operation.ts";
import { classOf } from "./operation-class.ts";
import { OperationReader } from "./operation-reader.ts";
import { OutputFlow, type OutputFlowOwner } from "./output-flow.ts";
import { ReadPositions } from "./read-positions.ts";
import { Pin } from "./pin.ts";
import type { RelayClient, RelayEnvironment, RelayIdentity } from "./relay-environment.ts";
import { Segment } from "./segment.ts";

/**
 *   frame() ─► Operation ─► leased to the primary? ─yes─► Lease.write() ─► server
 *                               │no
 *                               ▼
 *                            Segment ──Sync──► LeaseSeeker ─► #found() ─► Lease.write() ─► server
 *
 *   server ─► ReplyReader ─► forward() ─► client;   settled() ─► release
 */
export class Relay implements BackendHolder, LeaseOwner, IntakeTarget, OutputFlowOwner {
  readonly #client: RelayClient;
  readonly #environment: RelayEnvironment;
  readonly #identity: RelayIdentity;
  readonly #statements: ClientStatements;
  readonly #intake: Intake;
  readonly #segment = new Segment();
  readonly #gate: InputGate;
  readonly #seeker: LeaseSeeker;
  readonly #mint: Mint;
  readonly #flow: OutputFlow;
  readonly #positions: ReadPositions;
  readonly #pin: Pin;
  #lease: Lease | undefined;
  /** Of the latest lease, for the caller to be told; the lease itself is not kept, for many clients are idle. */
  #latestRoute: Route | undefined;
  #latestServer: Server | undefined;
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
    this.#statements = new ClientStatements(environment.registry, identity.parameters);
    this.#gate = new InputGate(client);
    const reader = new OperationReader(environment.classifier, this.#statements, identity.profile);
    this.#intake = new Intake(reader, this.#statements, this.#gate, this);
    this.#seeker = new LeaseSeeker(environment, identity, this);
    this.#mint = new Mint(environment, identity);
    this.#pin = new Pin(environment.counters);
    this.#positions = new ReadPositions(identity.cluster, positions);
    this.#flow = new OutputFlow(client, environment, this);
  }

  /** Who served the latest segment. */
  get servedBy(): { readonly role: "primary" | "replica"; readonly server: string } | undefined {
    if (this.#latestRoute === undefined || this.#latestServer === undefined) return undefined;
    return { role: this.#latestRoute.role, server: this.#latestServer.name };
  }

  get pinned(): PinReason | "session_mode" | undefined {
    return this.#pin.reason;
  }

  /** Something is asked for and not answered, or a transaction is open. A connection kept for the session's state alone is not. */
  get isBusy(): boolean {
    const isServed = this.#lease?.backend.isQuiet === false;
    return isServed || this.#seeker.isSeeking || this.#isDispatchDue;
  }

  /** Asks for the position behind the next Sync. `result` is called once everything sent so far is answered, or soon after. */
  wantPosition(result: MintResult): void {
    this.#mint.want(result);
  }

  // From the client.

  /** One whole message. Never between `suspendInput` and `resumeInput`. */
  frame(type: number, chunk: Uint8Array, start: number = 0, end: number = chunk.length): void {
    this.#intake.frame(type, chunk, start, end);
  }

  /** The beginning of a message too large to keep; the rest comes by `largeBytes`. */
  largeStart(type: number, prefix: Uint8Array): void {
    this.#intake.largeStart(type, prefix);
  }

  largeBytes(bytes: Uint8Array, isLast: boolean): void {
    this.#intake.largeBytes(bytes, isLast);
  }

  /** Everything that was read in one pass has been delivered: send what it came to. */
  endOfInput(): void {
    if (this.#isFlushAsked) this.#dispatch();
    if (this.#lease !== undefined) this.#flush(this.#lease);
  }

  /** The client has taken all its answers. */
  drained(): void {
    if (!this.#flow.isBlocked) return;
    this.#flow.drained();
    this.#lease?.backend.resume();
    this.#releaseIfQuiet();
    this.#gate.lift(Hold.CLIENT_QUEUE);
  }

  /** A cancel request with this session's key. Whatever it does, the session goes on. */
  cancel(): void {
    const lease = this.#lease;
    if (this.#seeker.isSeeking) {
      this.#seeker.stop();
      this.failed(canceledByUser());
    } else if (lease !== undefined && !lease.isAnswered) {
      lease.cancel(this.#environment);
    }
  }

  /** The client is gone, in order (Terminate) or not. */
  leave(isOrderly: boolean): void {
    if (this.#intake.isClosed) return;
    this.#intake.close();
    this.#flow.stop();
    this.#seeker.stop();
    this.#segment.clear();
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease !== undefined) {
      lease.flush();
      depart(this.#environment, lease.backend, {
        isMidMessage: this.#isMidMessage,
        cancelsRunning: !isOrderly,
        needsReset: this.#pin.isSet,
      });
    }
    this.#isDispatchDue = false;
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
    this.#lease?.progressed(this.#gate);
    // A copy-in that has begun.
    this.#answered();
  }

  statementsDropped(): void {
    this.#statements.dropped();
  }

  settled(): void {
    const lease = this.#lease;
    if (lease?.isAnswered !== true) return;
    if (!lease.backend.isUnsynced) {
      const wrote = lease.acknowledgedWrite();
      if (wrote && lease.backend.status === Status.IDLE) this.#positions.written();
      this.#mint.settled(wrote);
    }
    this.#releaseIfQuiet();
    this.#answered();
    this.#gate.lift(Hold.PLAN);
  }

  lost(error: PoolError): void {
    const lease = this.#lease;
    if (lease === undefined) return;
    this.#environment.counters.lostBackends++;
    this.#lease = undefined;
    const answer = lossAnswer(lease.backend, error, this.#pin.isSet);
    // What was not answered is undone before the client's next message is read.
    lease.backend.plan.abandon();
    this.#environment.pools.discard(lease.backend);
    if (this.#isMidMessage) this.#intake.dropLarge();
    if (lease.isPrimary) this.#positions.written();
    this.#mint.lost();
    if (answer.isFatal) {
      this.end(answer.bytes);
      return;
    }
    if (answer.isSkipping) this.#intake.skipToSync();
    if (answer.bytes !== undefined) this.forward(answer.bytes);
    this.#leaseEnded();
    this.#answered();
  }

  /** The beginning of a large message is with the server, its end is not. */
  get #isMidMessage(): boolean {
    return this.#intake.isMidLarge && !this.#isDispatchDue;
  }

  // From the parts of its own: what was read of the client, and how the client takes its answers.

  take(operation: Operation): boolean {
    const lease = this.#lease;
    if (lease?.isPrimary === true) {
      this.#write(lease, operation);
      return true;
    }
    if (this.#segment.isEmpty) {
      const { kind } = operation;
      // What is left of a copy that has failed: the server would drop it too ("COPY Operations").
      if (kind === "copy_data" || kind === "copy_end") return false;
      if (kind === "refused_query" && lease === undefined) {
        this.forward(operation.answer);
        return true;
      }
    }
    this.#segment.add(operation);
    if (this.#segment.isWhole || this.#segment.isFull) this.#dispatch();
    else if (operation.kind === "flush") this.#isFlushAsked = true;
    return true;
  }

  takeLarge(): void {
    if (this.#lease?.isPrimary !== true) this.#dispatch();
    this.endOfInput();
  }

  takeRaw(bytes: Uint8Array): void {
    if (this.#lease === undefined) return;
    this.#lease.raw(bytes);
    this.#flush(this.#lease);
  }

  waits(): void {
    this.#lease?.askForAnswers();
    this.#answered();
  }

  blocked(): void {
    this.#gate.hold(Hold.CLIENT_QUEUE);
    this.#lease?.backend.pause();
  }

  /** Finds a server for what was gathered. */
  #dispatch(): void {
    if (this.#seeker.isSeeking || this.#isDispatchDue || this.#segment.isEmpty) return;
    this.#isFlushAsked = false;
    const lease = this.#lease;
    if (lease !== undefined) {
      this.#dispatchBehind(lease);
      return;
    }
    if (this.#segment.isSyncOnly) {
      this.#segment.clear();
      this.forward(READY_IDLE_FRAME);
      return;
    }
    const positions = this.#readablePositions();
    this.#seeker.seek({
      access: positions === undefined ? "primary" : "read",
      positions: positions ?? [],
      pinnedReason: this.#whyNotReplica(positions),
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
    if (!this.#segment.isRead || this.#pin.isSet) return undefined;
    return this.#positions.under(this.#identity.profile);
  }

  /** Why a read is sent to the primary; nothing for what belongs there. */
  #whyNotReplica(positions: readonly Position[] | undefined): RouteRequest["pinnedReason"] {
    if (positions !== undefined || !this.#segment.isRead) return undefined;
    const isPinned = this.#pin.isSet || this.#identity.profile.poolMode === "session";
    return isPinned ? "pinned" : "position_unknown";
  }

  found(backend: BackendConnection, route: Route): void {
    const lease = new Lease(backend, route, {
      identity: this.#identity,
      statements: this.#statements,
      mint: this.#mint,
    });
    this.#lease = lease;
    this.#latestRoute = route;
    this.#latestServer = backend.server;
    backend.attach(this);
    if (this.#flow.isBlocked) backend.pause();
    if (this.#identity.profile.poolMode === "session") this.#pin.set("session_mode");
    this.#writeSegment(lease);
    this.#gate.lift(Hold.LEASE);
    this.#answered();
  }

  #writeSegment(lease: Lease): void {
    for (const operation of this.#segment.take()) this.#write(lease, operation);
    this.#flush(lease);
  }

  #write(lease: Lease, operation: Operation): void {
    const pin = classOf(operation)?.pin;
    if (pin !== undefined) this.#pin.set(pin);
    lease.write(operation);
  }

  #flush(lease: Lease): void {
    lease.flush();
    lease.backend.answerLocally();
    lease.restrain(this.#gate);
    // All of it was answered by us.
    if (lease.isAnswered && !this.#isMidMessage) this.settled();
  }

  #releaseIfQuiet(): void {
    const backend = this.#lease?.backend;
    if (backend?.isQuiet !== true || this.#pin.isSet || this.#isMidMessage) return;
    if (this.#flow.isOverCap) return;
    this.#lease = undefined;
    backend.detach();
    giveBack(this.#environment, backend);
    this.#leaseEnded();
  }

  /** If nothing is owed or about to be sent, what waited for that goes on. */
  #answered(): void {
    if (this.#lease?.owesAnswers === true || this.#gate.isHeldFor(Hold.LEASE)) return;
    this.#intake.answered();
  }

  /** What waited for the end of the lease goes on, and nothing of the connection's holds the client back any more. */
  #leaseEnded(): void {
    if (this.#isDispatchDue) {
      this.#isDispatchDue = false;
      this.#dispatch();
      if (!this.#seeker.isSeeking) this.#gate.lift(Hold.LEASE);
    }
    this.#gate.lift(Hold.SERVER_QUEUE);
    this.#gate.lift(Hold.PLAN);
  }

  /** No server could be had for the segment: an error to this request, and the session goes on. */
  failed(error: PoolError): void {
    const isWhole = this.#segment.isWhole;
    this.#segment.undo(this.#statements);
    this.#intake.dropLarge();
    const { sqlState, message, hint } = error;
    this.forward(encodeErrorResponse({ severity: "ERROR", sqlState, message, hint }));
    if (isWhole) this.forward(READY_IDLE_FRAME);
    else this.#intake.skipToSync();
    this.#mint.settled(false);
    this.#gate.lift(Hold.LEASE);
    this.#answered();
  }

  end(error: Uint8Array | undefined): void {
    if (this.#intake.isClosed) return;
    this.leave(false);
    this.#client.abort(error);
  }
}
