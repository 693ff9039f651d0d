// Back-pressure from a client that reads slowly to the server that answers it, and the end of one that does not read at all.
import type { Timer } from "../time/clock.ts";
import type { RelayClient, RelayEnvironment } from "./relay-environment.ts";

/** Unread bytes past which the server is not read on: enough to keep a fast client busy, little enough to have for many. */
export const CLIENT_QUEUE_MAX = 262_144;

export interface OutputFlowOwner {
  /** The client has enough to take for now. */
  blocked(): void;
  /** It takes nothing any more: nothing can be said to it. */
  end(error: undefined): void;
}

export class OutputFlow {
  readonly #client: RelayClient;
  readonly #environment: RelayEnvironment;
  readonly #owner: OutputFlowOwner;
  #isBlocked = false;
  #timer: Timer | undefined;
  #queuedAtCheck = 0;

  constructor(client: RelayClient, environment: RelayEnvironment, owner: OutputFlowOwner) {
    this.#client = client;
    this.#environment = environment;
    this.#owner = owner;
  }

  get isBlocked(): boolean {
    return this.#isBlocked;
  }

  /**
   * Blocked, and over the cap of all clients together. Such a client keeps its connection although its answer is complete: who waits for
   * that connection adds nothing to the sum, which is past the cap by at most what was read last from each connection.
   */
  get isOverCap(): boolean {
    const { usedBytes, bytesMax } = this.#environment.output;
    return this.#isBlocked && usedBytes > bytesMax;
  }

  /** Over the cap of all clients together, a client may queue nothing more until it has taken what it has. */
  get #isOver(): boolean {
    const { queuedBytes } = this.#client;
    if (queuedBytes === 0) return false;
    const { usedBytes, bytesMax } = this.#environment.output;
    return queuedBytes > CLIENT_QUEUE_MAX || usedBytes > bytesMax;
  }

  /** After bytes were forwarded. */
  check(): void {
    if (this.#isBlocked) {
      // The rest of what was read already: it must not look like a client that takes nothing.
      this.#queuedAtCheck = Math.max(this.#queuedAtCheck, this.#client.queuedBytes);
      return;
    }
    if (!this.#isOver) return;
    this.#isBlocked = true;
    this.#queuedAtCheck = this.#client.queuedBytes;
    this.#watch();
    this.#owner.blocked();
  }

  /** The client has taken everything. */
  drained(): void {
    this.#isBlocked = false;
    this.stop();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Any byte taken within the time buys as much time again. */
  #watch(): void {
    const { clock, clientReadTimeoutMs } = this.#environment;
    this.#timer = clock.schedule(clientReadTimeoutMs, () => {
      if (this.#client.queuedBytes < this.#queuedAtCheck) {
        this.#queuedAtCheck = this.#client.queuedBytes;
        this.#watch();
        return;
      }
      this.#environment.counters.slowReadersClosed++;
      this.#owner.end(undefined);
    });
  }
}
