// Takes a client's messages in: reads each into an operation, makes one wait that depends on answers, and follows a large one through.
import { READY_IDLE_FRAME } from "../wire/backend-messages.ts";
import { Frontend, type Span } from "../wire/message-types.ts";
import type { ClientStatements } from "./client-statements.ts";
import { Hold, type InputGate } from "./input-gate.ts";
import type { Operation } from "./operation.ts";
import { type OperationReader, type ReadResult, invalidMessageType } from "./operation-reader.ts";

/** Whoever carries the operations out. */
export interface IntakeTarget {
  /** False when the operation is not carried out, so that the rest of a large message is to be dropped. */
  take(operation: Operation): boolean;
  /** A large message was taken: it goes to a server now, ahead of its end. */
  takeLarge(): void;
  /** More of it. */
  takeRaw(bytes: Uint8Array): void;
  /** The end of it has been taken. */
  settled(): void;
  /** A message waits for `answered`; it may be called at once. */
  waits(): void;
  /** To the client. */
  forward(bytes: Uint8Array): void;
  /** The client has said Terminate. */
  leave(isOrderly: boolean): void;
  /** The byte stream can't be followed any further; `error` is the last thing to say. */
  end(error: Uint8Array): void;
}

interface Waiting extends Span {
  readonly type: number;
  readonly isLarge: boolean;
}

/**
 * `open`: messages are taken. `skipping`: an error of ours was said with no server involved, so everything up to the next Sync is
 * dropped ("Extended Query"). `closed`: nothing is taken any more.
 */
type Mode = "open" | "skipping" | "closed";

export class Intake {
  readonly #reader: OperationReader;
  readonly #statements: ClientStatements;
  readonly #gate: InputGate;
  readonly #target: IntakeTarget;
  #mode: Mode = "open";
  /** The rest of a large message is sent on behind its beginning, or dropped. */
  #large: "sent" | "dropped" | undefined;
  #waiting: Waiting | undefined;

  constructor(
    reader: OperationReader,
    statements: ClientStatements,
    gate: InputGate,
    target: IntakeTarget,
  ) {
    this.#reader = reader;
    this.#statements = statements;
    this.#gate = gate;
    this.#target = target;
  }

  get isClosed(): boolean {
    return this.#mode === "closed";
  }

  /** The beginning of a large message was taken, its end was not. */
  get isMidLarge(): boolean {
    return this.#large === "sent";
  }

  frame(type: number, chunk: Uint8Array, start: number, end: number): void {
    if (this.#mode === "closed") return;
    if (type === Frontend.TERMINATE) {
      this.#target.leave(true);
    } else if (this.#mode === "open") {
      this.#assertOpen();
      const result = this.#reader.read(type, chunk, start, end);
      if (result === "wait") this.#wait({ type, chunk, start, end, isLarge: false });
      else this.#taken(type, result);
    } else if (type === Frontend.SYNC) {
      this.#mode = "open";
      // Sync after an error that no server knows of.
      this.#target.forward(READY_IDLE_FRAME);
    }
  }

  largeStart(type: number, prefix: Uint8Array): void {
    this.#large = "dropped";
    if (this.#mode !== "open") return;
    this.#assertOpen();
    const result = this.#reader.readLarge(type, prefix);
    // Before it is taken: that may find that no server can be had.
    this.#large = "sent";
    if (result === "wait") {
      this.#wait({ type, chunk: prefix, start: 0, end: prefix.length, isLarge: true });
    } else if (!this.#taken(type, result)) {
      this.#large = "dropped";
    }
    if (this.isMidLarge && this.#waiting === undefined) this.#target.takeLarge();
  }

  largeBytes(bytes: Uint8Array, isLast: boolean): void {
    if (this.isMidLarge) this.#target.takeRaw(bytes);
    if (!isLast) return;
    const wasSent = this.isMidLarge;
    this.#large = undefined;
    if (wasSent) this.#target.settled();
  }

  /** Nothing is owed any more: the message that waited for that is read. */
  answered(): void {
    this.#statements.settle();
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    const { type, chunk, start, end, isLarge } = waiting;
    if (isLarge) this.largeStart(type, chunk);
    else this.frame(type, chunk, start, end);
    if (this.#waiting === undefined) this.#gate.lift(Hold.ANSWERS);
  }

  /** No server has the message, or will have its end. */
  dropLarge(): void {
    if (this.isMidLarge) this.#large = "dropped";
  }

  /** An error was said to a segment whose Sync has not been read. */
  skipToSync(): void {
    this.#mode = "skipping";
  }

  close(): void {
    this.#mode = "closed";
    this.#waiting = undefined;
  }

  #wait(message: Waiting): void {
    this.#waiting = message;
    this.#gate.hold(Hold.ANSWERS);
    this.#target.waits();
  }

  /** True when a server is to have the rest of the message. */
  #taken(type: number, result: Exclude<ReadResult, "wait">): boolean {
    if (result === "invalid") {
      this.#target.end(invalidMessageType(type));
      return false;
    }
    const isTaken = this.#target.take(result);
    return isTaken && result.kind !== "fail" && result.kind !== "refused_query";
  }

  #assertOpen(): void {
    if (this.#gate.isHeldFor(Hold.LEASE)) {
      throw new Error("a message was delivered while the client's input is suspended");
    }
  }
}
