// Whether a client may send on: closed while any reason holds. Reasons are bits, so that two of them can't open it for each other.
import type { RelayClient } from "./relay-environment.ts";

export const Hold = {
  /** A lease is being sought for what was read. */
  LEASE: 1,
  /** The server has not taken what was sent. */
  SERVER_QUEUE: 2,
  /** The client has not taken its answers. */
  CLIENT_QUEUE: 4,
  /** Too many answers are owed. */
  PLAN: 8,
  /** What was read last depends on answers that are owed. */
  ANSWERS: 16,
} as const;

export class InputGate {
  readonly #client: RelayClient;
  #holds = 0;

  constructor(client: RelayClient) {
    this.#client = client;
  }

  isHeldFor(reason: number): boolean {
    return (this.#holds & reason) !== 0;
  }

  hold(reason: number): void {
    const wasOpen = this.#holds === 0;
    this.#holds |= reason;
    if (wasOpen) this.#client.suspendInput();
  }

  lift(reason: number): void {
    if ((this.#holds & reason) === 0) return;
    this.#holds &= ~reason;
    if (this.#holds === 0) this.#client.resumeInput();
  }
}
