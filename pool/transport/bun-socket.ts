// A ByteSocket over one Bun socket, before and after TLS.
//
//            attach                upgrade                 handshake ok
//   (new) ──────────► plain ──────────────► handshaking ──────────────► secure
//
// State lives here and in nothing that Bun makes: after an upgrade Bun calls the old handlers with ciphertext, on another
// JS object that shares only `data`.
import type { Socket } from "bun";
import { PoolError } from "../errors.ts";
import type { Clock, Timer } from "../time/clock.ts";
import { concatBytes } from "../wire/message-types.ts";
import { RELEASE_BYTES_MIN } from "./release-bytes.ts";
import { SendQueue } from "./send-queue.ts";
import type { ByteSocket, SocketHandlers } from "./socket.ts";
import type { GatheredSocket, TurnGatherer } from "./turn-gatherer.ts";

/** How long `end` waits for the peer to take the queue and to close its side; then the socket is destroyed. */
const END_TIMEOUT_MS = 5000;

/** A silent peer is probed after this; Bun fixes 10 probes, 1 s apart, so a dead one is found 40 s after its last byte. */
const KEEPALIVE_IDLE_MS = 30_000;

const BROKEN_HANDSHAKE_CODES: ReadonlySet<string> = new Set(["EPROTO", "ECONNRESET"]);

type Layer = "plain" | "handshaking" | "secure";

/** `dead`: the kernel's socket is gone but the owner has not been told yet, because of bytes to deliver first. */
type State = "open" | "ending" | "dead" | "closed";

type Native = Socket<BunSocket>;

interface Handshake {
  resolve(authorizationError: Error | null): void;
  reject(error: PoolError): void;
}

export class BunSocket implements ByteSocket, GatheredSocket {
  readonly isAccepted: boolean;
  readonly #clock: Clock;
  readonly #gatherer: TurnGatherer;
  /** Undefined until the connection stands. */
  #native: Native | undefined;
  #remoteAddress = "";
  #handlers: SocketHandlers | undefined;
  /** Arrived while paused or without handlers: TLS records of one read, a handshake's last segment, bytes before a reset. */
  #inbound: Uint8Array[] | undefined;
  /** What was read in this turn of the event loop and is handled at its end; nothing is in `#inbound` then. */
  #arrived: Uint8Array | undefined;
  /** What was written in this turn of the event loop and goes out at its end; shorter than `RELEASE_BYTES_MIN`. */
  #gathered: Uint8Array | undefined;
  /** There while something waits. */
  #outbound: SendQueue | undefined;
  #layer: Layer = "plain";
  #state: State = "open";
  #isPaused = false;
  /** What Bun was last told. */
  #isReading = true;
  #closeError: Error | undefined;
  #isReported = false;
  #endTimer: Timer | undefined;
  #handshake: Handshake | undefined;

  constructor(clock: Clock, gatherer: TurnGatherer, isAccepted: boolean) {
    this.isAccepted = isAccepted;
    this.#clock = clock;
    this.#gatherer = gatherer;
  }

  get remoteAddress(): string {
    return this.#remoteAddress;
  }

  get isSecure(): boolean {
    return this.#layer === "secure";
  }

  get queuedBytes(): number {
    return this.#outbound?.bytes ?? 0;
  }

  get layer(): Layer {
    return this.#layer;
  }

  /** The DER of the peer's certificate; undefined without TLS. */
  get peerCertificate(): Uint8Array | undefined {
    return this.#layer === "secure" ? this.#native?.getPeerX509Certificate().raw : undefined;
  }

  /** Reading stops until the owner has set handlers. */
  attach(native: Native, remoteAddress: string): void {
    this.#native = native;
    this.#remoteAddress = remoteAddress;
    native.setKeepAlive(true, KEEPALIVE_IDLE_MS);
    this.#syncReading();
  }

  setHandlers(handlers: SocketHandlers): void {
    this.#handlers = handlers;
    if (this.#state === "closed") this.#reportSoon();
    else this.#continueReading();
  }

  pause(): void {
    this.#isPaused = true;
    this.#keepArrived();
    this.#syncReading();
  }

  resume(): void {
    this.#isPaused = false;
    this.#continueReading();
  }

  write(bytes: Uint8Array): void {
    if (this.#state !== "open" || this.#native === undefined || bytes.length === 0) return;
    const gathered = this.#gathered;
    if (gathered !== undefined && gathered.length + bytes.length < RELEASE_BYTES_MIN) {
      this.#gathered = concatBytes([gathered, bytes]);
      return;
    }
    this.sendGathered();
    if (this.#shouldGather(bytes)) this.#gathered = bytes;
    else this.#send(bytes);
  }

  sendGathered(): void {
    const gathered = this.#gathered;
    if (gathered === undefined) return;
    this.#gathered = undefined;
    this.#send(gathered);
  }

  handleGathered(): void {
    const arrived = this.#arrived;
    if (arrived === undefined) return;
    this.#arrived = undefined;
    try {
      this.#handlers?.data(arrived);
    } catch (error) {
      this.#handlerThrew(error);
    }
  }

  end(): void {
    if (this.#state === "dead") this.#finish(this.#closeError);
    if (this.#state !== "open") return;
    this.sendGathered();
    this.#state = "ending";
    this.#arrived = undefined;
    this.#inbound = undefined;
    this.#endTimer = this.#clock.schedule(END_TIMEOUT_MS, () => this.destroy());
    // What the peer still sends is read and dropped: closing on unread bytes would reset the connection, and with it
    // whatever of our last message the peer has not read.
    this.#syncReading();
    if (this.#outbound === undefined) this.#native?.shutdown();
  }

  destroy(): void {
    if (this.#state === "closed") return;
    this.sendGathered();
    this.#finish(undefined);
    this.#native?.terminate();
  }

  /**
   * Hands the stream to the TLS layer that `start` creates. Resolves after the handshake with what certificate
   * verification had to say; rejects, destroyed, when the handshake fails or the deadline passes.
   */
  async upgrade(start: (native: Native) => Native, deadline: number): Promise<Error | null> {
    const native = this.#native;
    if (this.#state !== "open" || native === undefined || this.#layer !== "plain") {
      throw new PoolError("ERR_CONNECT_FAILED", "the connection closed before the TLS handshake", {
        sqlState: "08006",
      });
    }
    this.sendGathered();
    this.#keepArrived();
    // Bytes before the handshake are not encrypted and nobody must take them for bytes of the TLS stream.
    if (this.#inbound !== undefined || this.#outbound !== undefined) {
      this.destroy();
      throw new PoolError("ERR_PROTOCOL_VIOLATION", "unencrypted data before the TLS handshake", {
        sqlState: "08P01",
      });
    }
    this.#layer = "handshaking";
    this.#handlers = undefined;
    this.#isPaused = false;
    this.#syncReading();
    const { promise, resolve, reject } = Promise.withResolvers<Error | null>();
    this.#handshake = { resolve, reject };
    const timer = this.#clock.schedule(deadline - this.#clock.now(), () => {
      this.#handshake = undefined;
      this.destroy();
      reject(
        new PoolError("ERR_CONNECT_TIMEOUT", "TLS handshake timed out", { sqlState: "08001" }),
      );
    });
    try {
      this.#native = start(native);
      return await promise;
    } catch (error) {
      this.destroy();
      throw error instanceof PoolError ? error : handshakeFailed(error);
    } finally {
      timer.cancel();
    }
  }

  // The rest is called by the shared Bun handlers of `bun-transport.ts`.

  receive(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    if (!this.#canDeliver || this.#inbound !== undefined) {
      this.#inbound ??= [];
      this.#inbound.push(bytes);
    } else if (this.#arrived !== undefined) {
      this.handleGathered();
      this.receive(bytes);
    } else if (this.#gatherer.addReader(this)) {
      this.#arrived = bytes;
    } else {
      this.#handlers?.data(bytes);
    }
  }

  /** The kernel takes bytes again; Bun also says so when nothing waits. */
  flush(): void {
    const native = this.#native;
    if (native === undefined || this.#outbound?.flush(native) !== true) return;
    this.#outbound = undefined;
    if (this.#state === "ending") native.shutdown();
    else if (this.#state === "open") this.#handlers?.drain();
  }

  /**
   * Bun's `isSuccess` is also false after a finished handshake with a certificate of another host, whose verification was
   * switched off; only the error's code tells that from a handshake that broke.
   */
  handshakeDone(isSuccess: boolean, authorizationError: Error | null): void {
    const handshake = this.#handshake;
    this.#handshake = undefined;
    if (handshake === undefined) return;
    if (isSuccess || !BROKEN_HANDSHAKE_CODES.has(errorCode(authorizationError))) {
      this.#layer = "secure";
      this.#syncReading();
      handshake.resolve(authorizationError);
    } else {
      handshake.reject(handshakeFailed(authorizationError));
    }
  }

  /** Bun's socket has closed. The owner learns it behind the bytes that came before, as it would from the kernel. */
  closed(error: Error | undefined): void {
    this.#handshake?.reject(handshakeFailed(error));
    this.#handshake = undefined;
    if (this.#state === "ending") this.#finish(undefined);
    if (this.#state !== "open") return;
    this.#state = "dead";
    this.#closeError = error;
    this.#keepArrived();
    const hadQueue = this.#outbound !== undefined;
    this.#gathered = undefined;
    this.#outbound = undefined;
    this.#deliverSoon();
    // Nobody may wait for a drain that can't come, and keep this socket paused meanwhile.
    if (hadQueue) this.#handlers?.drain();
  }

  /** A handler of the owner threw: a bug costs its own connection and nothing else. */
  fail(error: Error): void {
    if (this.#state === "closed") {
      reportError(error);
      return;
    }
    this.#finish(error);
    this.#native?.terminate();
  }

  get #canDeliver(): boolean {
    return this.#handlers !== undefined && !this.#isPaused;
  }

  /** Not behind a queue: it has no write to save, and `queuedBytes` must count at once what waits there. */
  #shouldGather(bytes: Uint8Array): boolean {
    const isSmall = bytes.length < RELEASE_BYTES_MIN;
    return isSmall && this.#outbound === undefined && this.#gatherer.addWriter(this);
  }

  #send(bytes: Uint8Array): void {
    const sent = this.#outbound === undefined ? Math.max(0, this.#native?.write(bytes) ?? 0) : 0;
    if (sent === bytes.length) return;
    this.#outbound ??= new SendQueue();
    this.#outbound.add(bytes, sent);
  }

  #syncReading(): void {
    const native = this.#native;
    if (native === undefined || this.#state === "dead" || this.#state === "closed") return;
    const shouldRead =
      this.#layer === "handshaking" ||
      this.#state === "ending" ||
      (this.#canDeliver && this.#inbound === undefined);
    if (shouldRead === this.#isReading) return;
    this.#isReading = shouldRead;
    if (shouldRead) native.resume();
    else native.pause();
  }

  #continueReading(): void {
    if (this.#inbound !== undefined || this.#state === "dead") this.#deliverSoon();
    else this.#syncReading();
  }

  /** Never from inside a call of the owner, who may be in the middle of a change of its own state. */
  #deliverSoon(): void {
    queueMicrotask(() => {
      try {
        this.#deliver();
      } catch (error) {
        this.#handlerThrew(error);
      }
    });
  }

  #handlerThrew(error: unknown): void {
    this.fail(
      error instanceof Error ? error : new Error("a socket handler threw", { cause: error }),
    );
  }

  /** What has arrived waits with the rest, for reading has stopped or the socket has closed. */
  #keepArrived(): void {
    if (this.#arrived === undefined) return;
    this.#inbound = [this.#arrived];
    this.#arrived = undefined;
  }

  #deliver(): void {
    while (this.#canDeliver) {
      const next = this.#inbound?.shift();
      if (next === undefined) {
        this.#inbound = undefined;
        break;
      }
      this.#handlers?.data(next);
    }
    if (!this.#canDeliver || this.#inbound !== undefined) return;
    if (this.#state === "dead") this.#finish(this.#closeError);
    else this.#syncReading();
  }

  /** The one place that ends the socket's life and tells the owner. */
  #finish(error: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#closeError = error;
    this.#arrived = undefined;
    this.#inbound = undefined;
    this.#gathered = undefined;
    this.#outbound = undefined;
    this.#endTimer?.cancel();
    this.#reportSoon();
  }

  #reportSoon(): void {
    queueMicrotask(() => {
      const handlers = this.#handlers;
      if (handlers === undefined || this.#isReported) return;
      this.#isReported = true;
      handlers.close(this.#closeError);
    });
  }
}

/** The runtime's short code is all that is shown: its texts may quote addresses and names. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "unknown reason";
}

function handshakeFailed(cause: unknown): PoolError {
  return new PoolError("ERR_CONNECT_FAILED", `TLS handshake failed: ${errorCode(cause)}`, {
    sqlState: "08001",
    cause,
  });
}
