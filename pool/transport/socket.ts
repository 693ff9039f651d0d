// The narrow view of a byte stream that the pool and the doors work with; TCP, TLS, WebSocket and simulated ones implement it.

export interface SocketHandlers {
  /** A fresh array of its exact size that nobody else has: it may be kept, or given up with `releaseBytes`; never written to. */
  data(bytes: Uint8Array): void;
  /** The queue of unsent bytes has become empty after it was not. */
  drain(): void;
  /** Exactly once, whoever closed; `error` when it was not orderly. Nothing is called after it. */
  close(error: Error | undefined): void;
}

/** What a client's or a server's byte stream can do, whatever carries it. */
export interface ByteChannel {
  /**
   * Sends what the peer's side takes and queues a copy of the rest. An array of `RELEASE_BYTES_MIN` and more is the caller's again
   * afterwards; a shorter one may be sent as late as the end of the event loop's turn and must stay as it is. No-op once closed.
   */
  write(bytes: Uint8Array): void;
  /** Bytes written that the kernel has not taken yet. */
  readonly queuedBytes: number;
  /** Stops `data` until `resume`. Idempotent. */
  pause(): void;
  resume(): void;
  /** Sends what is queued, then closes in order. */
  end(): void;
  /** Closes at once; queued bytes are lost. */
  destroy(): void;
}

export interface ByteSocket extends ByteChannel {
  setHandlers(handlers: SocketHandlers): void;
  readonly remoteAddress: string;
  /** True after a TLS handshake on this socket. */
  readonly isSecure: boolean;
}

export interface HostAddress {
  readonly host: string;
  readonly port: number;
}
