// Byte streams in memory: a pair of sockets that can tear, stall and break like TCP, and a transport that hands them out.
import { PoolError } from "#pool/errors.ts";
import type { ServerTls } from "#pool/routing/server.ts";
import type { ByteSocket, HostAddress, SocketHandlers } from "#pool/transport/socket.ts";
import type { Transport } from "#pool/transport/transport.ts";

export interface SocketPairOptions {
  /** Cuts each written array into copies that the reader gets in one `data` each; the default leaves it whole. */
  readonly tear?: (bytes: Uint8Array) => readonly Uint8Array[];
  /** Bytes that a reader who does not read takes before the writer's queue grows, as a kernel buffer does; default no end. */
  readonly windowBytes?: number;
  readonly remoteAddress?: string;
}

/** Cuts into parts of the given sizes, over and over. */
export function tearBySizes(sizes: readonly number[]): (bytes: Uint8Array) => Uint8Array[] {
  let index = 0;
  return (bytes) => {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes.length;) {
      const size = Math.max(1, sizes[index++ % Math.max(1, sizes.length)] ?? bytes.length);
      parts.push(bytes.slice(at, at + size));
      at += size;
    }
    return parts;
  };
}

/**
 * Nothing is delivered inside `write`, `resume` or `setHandlers`: always in a microtask, one `data` per microtask. The
 * peer's end arrives behind its bytes, and not while paused, as with the real sockets.
 */
export class FakeSocket implements ByteSocket {
  readonly remoteAddress: string;
  isSecure = false;
  /** What `Transport.peerCertificate` answers for this end. */
  peerCertificate: Uint8Array | undefined;
  readonly #tear: (bytes: Uint8Array) => readonly Uint8Array[];
  readonly #windowBytes: number;
  #peer: FakeSocket | undefined;
  #handlers: SocketHandlers | undefined;
  #inbound: Uint8Array[] = [];
  #outbound: Uint8Array[] = [];
  #state: "open" | "ending" | "closed" = "open";
  /** The peer has closed; told behind what came before. */
  #hasPeerClosed = false;
  #closeError: Error | undefined;
  #isReported = false;
  #isPaused = false;
  #isScheduled = false;

  constructor(options: SocketPairOptions = {}) {
    this.remoteAddress = options.remoteAddress ?? "127.0.0.1";
    this.#tear = options.tear ?? ((bytes) => [bytes.slice()]);
    this.#windowBytes = options.windowBytes ?? Number.POSITIVE_INFINITY;
  }

  static pair(options: SocketPairOptions = {}): [FakeSocket, FakeSocket] {
    const left = new FakeSocket(options);
    const right = new FakeSocket(options);
    left.#peer = right;
    right.#peer = left;
    return [left, right];
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  get queuedBytes(): number {
    return sizeOf(this.#outbound);
  }

  setHandlers(handlers: SocketHandlers): void {
    this.#handlers = handlers;
    this.#deliverSoon();
  }

  write(bytes: Uint8Array): void {
    if (this.#state !== "open" || bytes.length === 0) return;
    this.#outbound.push(...this.#tear(bytes));
    this.#send();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#deliverSoon();
  }

  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ending";
    this.#inbound = [];
    this.#finishIfSent();
  }

  destroy(): void {
    this.#close(undefined);
    this.#peer?.peerClosed();
  }

  /** The network breaks: both ends see `error`, and what was on the way is lost. */
  break(error: Error): void {
    this.#close(error);
    this.#peer?.destroyWith(error);
  }

  /** Called by the other end. */
  destroyWith(error: Error): void {
    this.#close(error);
  }

  /** Called by the other end. */
  peerClosed(): void {
    this.#hasPeerClosed = true;
    this.#deliverSoon();
  }

  /** Called by the other end: takes bytes as far as the window is open. */
  takeFrom(outbound: Uint8Array[]): void {
    while (sizeOf(this.#inbound) < this.#windowBytes) {
      const next = outbound.shift();
      if (next === undefined) break;
      if (this.#state === "open") this.#inbound.push(next);
    }
    this.#deliverSoon();
  }

  /** Called by the other end. */
  windowOpened(): void {
    if (this.#outbound.length === 0) return;
    this.#send();
    if (this.#outbound.length === 0 && this.#state === "open") this.#handlers?.drain();
  }

  #send(): void {
    this.#peer?.takeFrom(this.#outbound);
    this.#finishIfSent();
  }

  #finishIfSent(): void {
    if (this.#state !== "ending" || this.#outbound.length > 0) return;
    this.destroy();
  }

  #deliverSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    const handlers = this.#handlers;
    if (this.#state === "closed") {
      if (handlers === undefined || this.#isReported) return;
      this.#isReported = true;
      handlers.close(this.#closeError);
      return;
    }
    if (handlers === undefined || this.#isPaused) return;
    const next = this.#inbound.shift();
    if (next !== undefined) {
      this.#deliverSoon();
      this.#peer?.windowOpened();
      handlers.data(next);
    } else if (this.#hasPeerClosed) {
      this.#close(undefined);
    }
  }

  #close(error: Error | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#closeError = error;
    this.#inbound = [];
    this.#outbound = [];
    this.#deliverSoon();
  }
}

function sizeOf(arrays: readonly Uint8Array[]): number {
  return arrays.reduce((size, bytes) => size + bytes.length, 0);
}

/** What a fake server does with one new connection. */
export type FakeServer = (socket: FakeSocket, address: HostAddress) => void;

/** Hands out the client end of a pair for every connect and its other end to `server`; TLS is a flag on the client end. */
export class FakeTransport implements Transport {
  readonly #server: FakeServer;
  readonly #options: SocketPairOptions;
  /** Client ends in the order of their connects. */
  readonly connected: FakeSocket[] = [];
  /** Modes and hosts of the TLS handshakes asked for. */
  readonly upgrades: { readonly tls: ServerTls; readonly host: string }[] = [];
  /** When set, the next handshakes fail with it. */
  upgradeError: PoolError | undefined;
  /** When set, the certificate that a TLS server shows. */
  certificate: Uint8Array | undefined;

  constructor(server: FakeServer, options: SocketPairOptions = {}) {
    this.#server = server;
    this.#options = options;
  }

  connect(address: HostAddress, _deadline: number): Promise<ByteSocket> {
    const [client, server] = FakeSocket.pair(this.#options);
    this.connected.push(client);
    this.#server(server, address);
    return Promise.resolve(client);
  }

  upgradeClient(
    socket: ByteSocket,
    tls: ServerTls,
    host: string,
    _deadline: number,
  ): Promise<ByteSocket> {
    this.upgrades.push({ tls, host });
    if (this.upgradeError !== undefined) {
      socket.destroy();
      return Promise.reject(this.upgradeError);
    }
    if (!(socket instanceof FakeSocket)) {
      return Promise.reject(
        new PoolError("ERR_CONNECT_FAILED", "not a fake socket", { sqlState: "08001" }),
      );
    }
    socket.isSecure = true;
    socket.peerCertificate = this.certificate;
    return Promise.resolve(socket);
  }

  peerCertificate(socket: ByteSocket): Uint8Array | undefined {
    return socket instanceof FakeSocket ? socket.peerCertificate : undefined;
  }

  /** The same bytes every time: 0, 1, 2 … */
  randomBytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, (_, index) => index & 0xff);
  }
}
