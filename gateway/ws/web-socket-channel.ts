// A ByteChannel over one WebSocket: binary messages are arbitrary cuts of the byte stream, in both directions.
import type { Clock, Timer } from "#pool/time/clock.ts";
import { releaseBytes } from "#pool/transport/release-bytes.ts";
import type { ByteChannel, SocketHandlers } from "#pool/transport/socket.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { CloseCode } from "../session/error-mapping.ts";

/** What of Bun's ServerWebSocket is used. */
export interface NativeWebSocket {
  /** Bytes sent; -1: taken into a queue; 0: dropped. */
  sendBinary(bytes: Uint8Array, compress?: boolean): number;
  getBufferedAmount(): number;
  close(code?: number, reason?: string): void;
  terminate(): void;
  ping(): number;
  pause(): unknown;
  resume(): unknown;
}

/** Messages are no longer than this, so that one never nears the queue limit of Bun. */
export const MESSAGE_BYTES_MAX = 1_048_576;
/** Bun drops what goes beyond. We add to its queue only when it is empty. */
export const BACKPRESSURE_BYTES_MAX = 16 * MESSAGE_BYTES_MAX;
/** As many bytes as this leave at once: so large a piece is not worth copying for the sake of a common message. */
const DIRECT_BYTES_MIN = 16_384;
/** How long a peer may take for the last bytes and the close handshake. */
const CLOSE_TIMEOUT_MS = 5_000;

/** Close codes of an orderly end: normal, going away, and none given (RFC 6455, "Reserved Status Code Ranges"). */
const ORDERLY: ReadonlySet<number> = new Set([CloseCode.NORMAL, CloseCode.GOING_AWAY, 1005]);

/**
 *   open ──end()──► ending ──all sent──► closing ──close event──► closed
 *   (destroy() from anywhere: closed)
 */
type State = "open" | "ending" | "closing" | "closed";

export class WebSocketChannel implements ByteChannel {
  readonly #native: NativeWebSocket;
  readonly #clock: Clock;
  #handlers: SocketHandlers | undefined;
  #state: State = "open";
  /** Written and not given to Bun yet. */
  #outbound: Uint8Array[] = [];
  #outboundBytes = 0;
  #isFlushScheduled = false;
  /** Bun's queue is not empty: nothing is added to it. */
  #isBlocked = false;
  /** Arrived while paused: what Bun had already read. */
  #inbound: Uint8Array[] = [];
  #isPaused = false;
  #closeTimer: Timer | undefined;
  #isPongOwed = false;

  constructor(native: NativeWebSocket, clock: Clock) {
    this.#native = native;
    this.#clock = clock;
  }

  setHandlers(handlers: SocketHandlers): void {
    this.#handlers = handlers;
  }

  get queuedBytes(): number {
    if (this.#state === "closed") return 0;
    return this.#outboundBytes + this.#native.getBufferedAmount();
  }

  /** Everything small that is written in one turn leaves in one message. */
  write(bytes: Uint8Array): void {
    if (this.#state !== "open" || bytes.length === 0) return;
    if (bytes.length < DIRECT_BYTES_MIN || this.#isBlocked) {
      this.#enqueue(bytes.slice());
      this.#flushSoon();
      return;
    }
    this.#enqueue(bytes);
    this.#send(bytes);
    // What could not be sent ends in a part of `bytes`, which are the writer's again.
    const rest = this.#outbound.pop();
    if (rest !== undefined) this.#outbound.push(rest.slice());
  }

  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    if (this.#state === "open") this.#native.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    while (!this.#isPaused) {
      const next = this.#inbound.shift();
      if (next === undefined) break;
      if (this.#state === "open") this.#handlers?.data(next);
    }
    if (!this.#isPaused && this.#state !== "closed") this.#native.resume();
  }

  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ending";
    this.#inbound = [];
    // The peer's close frame must be read, or the end would only come by the timer.
    if (this.#isPaused) this.#native.resume();
    this.#closeTimer = this.#clock.schedule(CLOSE_TIMEOUT_MS, () => this.destroy());
    this.#flushSoon();
  }

  destroy(): void {
    if (this.#state === "closed") return;
    this.#forget();
    this.#native.terminate();
  }

  /** For the peer's fault, which `code` names. */
  refuse(code: number, reason: string): void {
    if (this.#state === "closed") return;
    this.#state = "closing";
    this.#outbound = [];
    this.#outboundBytes = 0;
    this.#closeTimer ??= this.#clock.schedule(CLOSE_TIMEOUT_MS, () => this.destroy());
    this.#native.close(code, reason);
  }

  /**
   * A peer that has not answered the ping before is gone, unless it is us who do not read, or the ping waits behind what the peer has
   * not read yet: `client_read_timeout` is for that one.
   */
  ping(): void {
    if (this.#state !== "open" || this.#isPaused || this.queuedBytes > 0) {
      this.#isPongOwed = false;
      return;
    }
    if (this.#isPongOwed) {
      this.destroy();
      return;
    }
    this.#isPongOwed = true;
    this.#native.ping();
  }

  // From the server's handlers.

  received(bytes: Uint8Array): void {
    this.#isPongOwed = false;
    if (this.#state !== "open") return;
    if (this.#isPaused) this.#inbound.push(bytes);
    else this.#handlers?.data(bytes);
  }

  ponged(): void {
    this.#isPongOwed = false;
  }

  /** Bun calls it many times on the way down. */
  drained(): void {
    if (!this.#isBlocked || this.#native.getBufferedAmount() > 0) return;
    this.#isBlocked = false;
    this.#flush();
  }

  /** The WebSocket is closed, whoever did it. */
  closed(code: number): void {
    this.#forget();
    const handlers = this.#handlers;
    this.#handlers = undefined;
    const isOrderly = ORDERLY.has(code);
    handlers?.close(isOrderly ? undefined : new Error(`the WebSocket was closed with ${code}`));
  }

  #enqueue(bytes: Uint8Array): void {
    this.#outbound.push(bytes);
    this.#outboundBytes += bytes.length;
  }

  #flushSoon(): void {
    if (this.#isFlushScheduled || this.#isBlocked) return;
    this.#isFlushScheduled = true;
    queueMicrotask(() => {
      this.#isFlushScheduled = false;
      this.#flush();
    });
  }

  /** Until all is sent or Bun's queue is not empty. All pieces are ours but `borrowed`. */
  #send(borrowed?: Uint8Array): void {
    while (this.#outboundBytes > 0 && !this.#isBlocked) {
      if (this.#state !== "open" && this.#state !== "ending") return;
      const message = this.#nextMessage();
      const sent = this.#native.sendBinary(message);
      // Bun has sent it or copied it.
      if (message !== borrowed) releaseBytes(message);
      if (sent <= 0) this.#isBlocked = true;
      // A gap in the byte stream is worse than its end. Not from inside a call of the owner, who may be in the middle of something.
      if (sent === 0) queueMicrotask(() => this.destroy());
    }
  }

  #flush(): void {
    this.#send();
    if (this.#isBlocked) return;
    if (this.#state === "open") {
      this.#handlers?.drain();
    } else if (this.#state === "ending") {
      this.#state = "closing";
      this.#native.close(CloseCode.NORMAL);
    }
  }

  /** As many of the pieces as fit into one message; a larger piece is cut. */
  #nextMessage(): Uint8Array {
    const pieces: Uint8Array[] = [];
    let size = 0;
    let count = 0;
    for (const piece of this.#outbound) {
      const room = MESSAGE_BYTES_MAX - size;
      if (piece.length > room) {
        pieces.push(piece.subarray(0, room));
        this.#outbound[count] = piece.subarray(room);
        size += room;
        break;
      }
      pieces.push(piece);
      size += piece.length;
      count++;
    }
    this.#outbound.splice(0, count);
    this.#outboundBytes -= size;
    const [first] = pieces;
    return pieces.length === 1 && first !== undefined ? first : concatBytes(pieces);
  }

  #forget(): void {
    this.#state = "closed";
    this.#closeTimer?.cancel();
    this.#closeTimer = undefined;
    this.#outbound = [];
    this.#outboundBytes = 0;
    this.#inbound = [];
  }
}
