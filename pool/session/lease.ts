// One client's use of one backend connection: writes the client's operations there, and knows what they may have done.
import type { BackendConnection } from "../backend/backend-connection.ts";
import { PoolError } from "../errors.ts";
import type { Route } from "../routing/server.ts";
import { FLUSH_FRAME } from "../wire/frontend-messages.ts";
import { Status } from "../wire/message-types.ts";
import { writeParameters } from "./attach-parameters.ts";
import type { ClientStatements } from "./client-statements.ts";
import { Hold, type InputGate } from "./input-gate.ts";
import type { Mint } from "./mint.ts";
import { mayWrite } from "./operation-class.ts";
import type { Operation } from "./operation.ts";
import type { RelayEnvironment, RelayIdentity } from "./relay-environment.ts";
import { SegmentWriter } from "./segment-writer.ts";

/** Answers owed by one server past which the client is not read on: a deeper pipeline gains nothing. */
const PLAN_LENGTH_MAX = 8_192;
/** Bytes waiting for a server past which the client is not read on. */
const SERVER_QUEUE_MAX = 262_144;

export class Lease {
  readonly backend: BackendConnection;
  readonly route: Route;
  readonly #identity: RelayIdentity;
  readonly #mint: Mint;
  readonly #writer: SegmentWriter;
  /** Something that may write was sent since the last acknowledged end of a transaction. */
  #mayHaveWritten = false;

  constructor(
    backend: BackendConnection,
    route: Route,
    client: {
      readonly identity: RelayIdentity;
      readonly statements: ClientStatements;
      readonly mint: Mint;
    },
  ) {
    this.backend = backend;
    this.route = route;
    this.#identity = client.identity;
    this.#mint = client.mint;
    this.#writer = new SegmentWriter(backend, client.statements);
  }

  get isPrimary(): boolean {
    return this.route.role === "primary";
  }

  /** Nothing is owed. */
  get isAnswered(): boolean {
    return this.backend.plan.length === 0;
  }

  /** A message that depends on answers waits for them. In copy-in mode none will come, and the server refuses what is no copy data. */
  get owesAnswers(): boolean {
    return !this.isAnswered && !this.backend.isCopyIn;
  }

  /** A server keeps the answers to messages without their Sync to itself until it is asked ("Extended Query": Flush). */
  askForAnswers(): void {
    if (!this.backend.hasUnsynced || this.backend.isCopyIn) return;
    this.#writer.raw(FLUSH_FRAME);
    this.flush();
  }

  write(operation: Operation): void {
    const { backend } = this;
    const { parameters } = this.#identity;
    // In force are those of the client before, or a DISCARD ALL of this one's has undone its own.
    if (backend.appliedParameters !== parameters.fingerprint && backend.isQuiet) {
      writeParameters(backend, this.#writer, parameters);
    }
    if (operation.kind === "query" && operation.resetsAll) backend.hasResetAll = true;
    if (mayWrite(operation)) this.#mayHaveWritten = true;
    const isProbed =
      operation.kind === "sync" && this.#mayHaveWritten && this.#mint.sync(this.#writer, backend);
    if (!isProbed) this.#writer.write(operation);
  }

  /** More of a large message. */
  raw(bytes: Uint8Array): void {
    this.#writer.raw(bytes);
  }

  /** Sends what was written. */
  flush(): void {
    this.#writer.flush();
  }

  /** Holds the client back that sends faster than the server takes or answers. */
  restrain(gate: InputGate): void {
    if (this.backend.plan.length > PLAN_LENGTH_MAX) gate.hold(Hold.PLAN);
    if (this.backend.queuedBytes > SERVER_QUEUE_MAX) gate.hold(Hold.SERVER_QUEUE);
  }

  progressed(gate: InputGate): void {
    if (this.backend.plan.length < PLAN_LENGTH_MAX / 2) gate.lift(Hold.PLAN);
  }

  /** Everything is answered: whether something may have been written. In a transaction block it stays so until the block ends. */
  acknowledgedWrite(): boolean {
    const wrote = this.#mayHaveWritten && this.isPrimary;
    if (this.backend.status === Status.IDLE) this.#mayHaveWritten = false;
    return wrote;
  }

  /** Cancels what runs. */
  cancel({ clock, reportBug }: RelayEnvironment): void {
    const deadline = clock.now() + this.#identity.profile.cancelWaitTimeoutMs;
    this.backend.cancel(deadline).catch((error: unknown) => {
      // Not delivered: the statement runs on, as it does when PostgreSQL drops a cancel request.
      if (!(error instanceof PoolError)) reportBug(error);
    });
  }
}
