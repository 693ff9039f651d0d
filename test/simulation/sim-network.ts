// Simulated TCP: seeded delays, torn reads, partial writes, back pressure and resets, in the order that TCP keeps.
import { PoolError } from "#pool/errors.ts";
import type { ByteSocket, HostAddress, SocketHandlers } from "#pool/transport/socket.ts";
import type { Transport } from "#pool/transport/transport.ts";
import type { SeededRandom } from "#test/support/seeded-random.ts";
import type { SimClock } from "./sim-clock.ts";

/** One way, milliseconds. */
const LATENCY_MIN_MS = 0.05;
const LATENCY_SPREAD_MS = 0.4;
/** A packet was lost and sent again. */
const SLOW_SHARE = 0.004;
const SLOW_MS = 200;
const TORN_SHARE = 0.05;
const PARTIAL_SHARE = 0.02;

export class SimSocket implements ByteSocket {
  readonly remoteAddress = "simulated";
  readonly isSecure = false;
  readonly #network: SimNetwork;
  #peer: SimSocket | undefined;
  #handlers: SocketHandlers | undefined;
  #isPaused = false;
  #state: "open" | "ending" | "closed" = "open";
  #inbound: Uint8Array[] = [];
  #queuedBytes = 0;
  /** Nothing overtakes what was sent before. */
  #lastArrival = 0;
  #hasPeerEnded = false;
  #error: Error | undefined;
  #isReported = false;

  constructor(network: SimNetwork) {
    this.#network = network;
  }

  static pair(network: SimNetwork): [SimSocket, SimSocket] {
    const near = new SimSocket(network);
    const far = new SimSocket(network);
    near.#peer = far;
    far.#peer = near;
    return [near, far];
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  setHandlers(handlers: SocketHandlers): void {
    this.#handlers = handlers;
    this.#deliverSoon();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#inbound.length > 0 || this.#hasPeerEnded) this.#deliverSoon();
  }

  write(bytes: Uint8Array): void {
    if (this.#state !== "open" || bytes.length === 0) return;
    const { random, clock } = this.#network;
    const isPartial = this.#queuedBytes > 0 || random.chance(PARTIAL_SHARE);
    if (isPartial) this.#queuedBytes += bytes.length;
    const pieces = random.chance(TORN_SHARE) ? torn(bytes, random) : [bytes.slice()];
    for (const piece of pieces) {
      this.#arrive(() => this.#peer?.receive(piece));
    }
    if (!isPartial) return;
    clock.scheduleAt(this.#lastArrival, () => {
      if (this.#queuedBytes === 0) return;
      this.#queuedBytes -= bytes.length;
      if (this.#queuedBytes === 0 && this.#state === "open") this.#handlers?.drain();
    });
  }

  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ending";
    this.#arrive(() => {
      this.#peer?.peerEnded(undefined);
      this.#finish(undefined);
    });
  }

  destroy(): void {
    if (this.#state === "closed") return;
    const reset = new Error("connection reset");
    this.#arrive(() => this.#peer?.peerEnded(reset));
    this.#finish(undefined);
  }

  /** Both sides lose what is on its way. */
  reset(): void {
    const reset = new Error("connection reset");
    this.#peer?.breakOff(reset);
    this.breakOff(reset);
  }

  /** From the network. */
  breakOff(error: Error): void {
    this.#inbound = [];
    this.#finish(error);
  }

  /** From the peer. */
  receive(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    if (this.#canDeliver && this.#inbound.length === 0) this.#handlers?.data(bytes);
    else this.#inbound.push(bytes);
  }

  /** From the peer. */
  peerEnded(error: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#hasPeerEnded = true;
    this.#error = error;
    this.#deliver();
  }

  get #canDeliver(): boolean {
    return this.#handlers !== undefined && !this.#isPaused;
  }

  #arrive(callback: () => void): void {
    const { clock } = this.#network;
    this.#lastArrival = Math.max(this.#lastArrival, clock.now() + this.#network.latency());
    clock.scheduleAt(this.#lastArrival, callback);
  }

  #deliverSoon(): void {
    queueMicrotask(() => this.#deliver());
  }

  #deliver(): void {
    while (this.#canDeliver && this.#state === "open") {
      const next = this.#inbound.shift();
      if (next === undefined) break;
      this.#handlers?.data(next);
    }
    // The end arrives behind the bytes, and not to one that does not read.
    const isRead = this.#inbound.length === 0 || this.#state !== "open";
    if (this.#hasPeerEnded && this.#canDeliver && isRead) this.#finish(this.#error);
    if (this.#state === "closed") this.#report();
  }

  #finish(error: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#error = error;
    this.#queuedBytes = 0;
    queueMicrotask(() => this.#report());
  }

  #report(): void {
    if (this.#isReported || this.#handlers === undefined) return;
    this.#isReported = true;
    this.#handlers.close(this.#error);
  }
}

function torn(bytes: Uint8Array, random: SeededRandom): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = 1 + random.below(bytes.length - at);
    pieces.push(bytes.slice(at, at + size));
    at += size;
  }
  return pieces;
}

/** Takes the server's end of a connection; false when nobody listens there. */
export type AcceptConnection = (host: string, socket: SimSocket) => boolean;

export class SimNetwork implements Transport {
  readonly clock: SimClock;
  readonly random: SeededRandom;
  readonly #accept: AcceptConnection;

  constructor(clock: SimClock, random: SeededRandom, accept: AcceptConnection) {
    this.clock = clock;
    this.random = random;
    this.#accept = accept;
  }

  latency(): number {
    const slowMs = this.random.chance(SLOW_SHARE) ? SLOW_MS : 0;
    return LATENCY_MIN_MS + LATENCY_SPREAD_MS * this.random.next() + slowMs;
  }

  connect(address: HostAddress, deadline: number): Promise<ByteSocket> {
    const { promise, resolve, reject } = Promise.withResolvers<ByteSocket>();
    const late = this.clock.schedule(deadline - this.clock.now(), () => {
      reject(
        new PoolError("ERR_CONNECT_TIMEOUT", "connecting to the server timed out", {
          sqlState: "08001",
        }),
      );
    });
    this.clock.schedule(this.latency() + this.latency(), () => {
      late.cancel();
      const [near, far] = SimSocket.pair(this);
      if (this.#accept(address.host, far)) resolve(near);
      else reject(new PoolError("ERR_CONNECT_FAILED", "connection refused", { sqlState: "08001" }));
    });
    return promise;
  }

  upgradeClient(): Promise<ByteSocket> {
    return Promise.reject(new Error("the simulation speaks no TLS"));
  }

  peerCertificate(): undefined {
    return undefined;
  }

  randomBytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.random.below(256));
  }
}
