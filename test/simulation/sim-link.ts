// One client's link to a gateway: its bytes arrive late and torn, its answers too, and it may stop reading.
import type { Position } from "#pool/consistency/position.ts";
import { Relay } from "#pool/session/relay.ts";
import type { RelayClient, RelayIdentity } from "#pool/session/relay-environment.ts";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import type { SimGateway } from "./sim-gateway.ts";
import type { SimNetwork } from "./sim-network.ts";

const PACKET_BYTES_MAX = 16_777_216;
const TORN_SHARE = 0.05;
/** Of answers, the share that the kernel does not take at once. */
const QUEUED_SHARE = 0.02;

export interface LinkOwner {
  /** One whole message of the gateway's, in `chunk` from `start` to `end`. */
  answer(type: number, chunk: Uint8Array, start: number, end: number): void;
  /** The gateway has ended the session, or the answers can't be understood. */
  ended(reason: string | undefined): void;
  /** The message at hand is about to be taken by the relay. */
  sending?(type: number): void;
}

export class SimLink implements RelayClient {
  readonly relay: Relay;
  readonly #gateway: SimGateway;
  readonly #network: SimNetwork;
  readonly #owner: LinkOwner;
  readonly #requests: FrameSplitter;
  readonly #answers: FrameSplitter;
  #queuedBytes = 0;
  #held: Uint8Array[] = [];
  #isReading = true;
  #isOpen = true;
  #lastRequestAt = 0;
  #lastAnswerAt = 0;
  /** Answers go through here first: a planted bug gives them to another client. */
  misdirect: ((bytes: Uint8Array) => SimLink | undefined) | undefined;

  constructor(
    gateway: SimGateway,
    network: SimNetwork,
    identity: RelayIdentity,
    positions: readonly Position[],
    owner: LinkOwner,
  ) {
    this.#gateway = gateway;
    this.#network = network;
    this.#owner = owner;
    this.relay = new Relay(this, gateway.environment, identity, positions);
    this.#requests = new FrameSplitter(
      {
        frame: (type, chunk, start, end) => {
          owner.sending?.(type);
          this.relay.frame(type, chunk, start, end);
        },
        largeStart: (type, prefix) => this.relay.largeStart(type, prefix),
        largeBytes: (bytes, isLast) => this.relay.largeBytes(bytes, isLast),
        violation: (reason) => owner.ended(reason),
      },
      PACKET_BYTES_MAX,
    );
    this.#answers = new FrameSplitter(
      {
        frame: (type, chunk, start, end) => owner.answer(type, chunk, start, end),
        largeStart: (type, prefix) => owner.answer(type, prefix, 0, prefix.length),
        largeBytes: () => {},
        violation: (reason) => owner.ended(reason),
      },
      PACKET_BYTES_MAX,
    );
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  send(bytes: Uint8Array): void {
    const { random, clock } = this.#network;
    const cut = random.chance(TORN_SHARE) ? 1 + random.below(bytes.length) : bytes.length;
    for (const piece of [bytes.slice(0, cut), bytes.slice(cut)]) {
      if (piece.length === 0) continue;
      this.#lastRequestAt = Math.max(this.#lastRequestAt, clock.now() + this.#network.latency());
      clock.scheduleAt(this.#lastRequestAt, () => this.#push(piece));
    }
  }

  /** The client goes, in order or not. */
  leave(isOrderly: boolean): void {
    if (!this.#isOpen) return;
    this.#close();
    this.relay.leave(isOrderly);
  }

  cancel(): void {
    if (this.#isOpen) this.relay.cancel();
  }

  stopReading(): void {
    this.#isReading = false;
  }

  goOnReading(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    const held = this.#held;
    this.#held = [];
    for (const bytes of held) this.#taken(bytes);
  }

  // RelayClient.

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  forward(bytes: Uint8Array): void {
    const other = this.misdirect?.(bytes);
    if (other === undefined) this.receive(bytes);
    else other.receive(bytes);
  }

  suspendInput(): void {
    this.#requests.suspend();
  }

  resumeInput(): void {
    if (!this.#isOpen) return;
    this.#requests.resume();
    this.relay.endOfInput();
  }

  abort(error: Uint8Array | undefined): void {
    if (!this.#isOpen) return;
    if (error !== undefined) this.forward(error);
    const { clock } = this.#network;
    this.#close();
    clock.scheduleAt(Math.max(clock.now(), this.#lastAnswerAt), () => this.#owner.ended(undefined));
  }

  /** Large chunks are gone when the gateway's call returns. */
  receive(chunk: Uint8Array): void {
    const bytes = chunk.slice();
    const { random, clock } = this.#network;
    const isQueued = !this.#isReading || this.#queuedBytes > 0 || random.chance(QUEUED_SHARE);
    if (isQueued) this.#count(bytes.length);
    this.#lastAnswerAt = Math.max(this.#lastAnswerAt, clock.now() + this.#network.latency());
    clock.scheduleAt(this.#lastAnswerAt, () => {
      if (isQueued && !this.#isReading) this.#held.push(bytes);
      else if (isQueued) this.#taken(bytes);
      else this.#answers.push(bytes);
    });
  }

  #push(bytes: Uint8Array): void {
    if (!this.#isOpen) return;
    this.#requests.push(bytes);
    this.relay.endOfInput();
  }

  #taken(bytes: Uint8Array): void {
    if (this.#isOpen) this.#count(-bytes.length);
    this.#answers.push(bytes);
    if (this.#isOpen && this.#queuedBytes === 0) this.relay.drained();
  }

  #count(bytes: number): void {
    this.#queuedBytes += bytes;
    this.#gateway.environment.output.usedBytes += bytes;
  }

  #close(): void {
    this.#isOpen = false;
    this.#requests.suspend();
    this.#gateway.environment.output.usedBytes -= this.#queuedBytes;
    this.#queuedBytes = 0;
  }
}
