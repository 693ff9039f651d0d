// How the pool opens byte streams to servers and gets randomness; the real one and the simulated one implement this.
import type { ServerTls } from "../routing/server.ts";
import type { ByteSocket, HostAddress } from "./socket.ts";

/** Deadlines are clock milliseconds. */
export interface Transport {
  /**
   * A host that starts with `/` is the folder of a Unix socket, as in libpq.
   *
   * @throws PoolError ERR_CONNECT_TIMEOUT or ERR_CONNECT_FAILED, both 08001.
   */
  connect(address: HostAddress, deadline: number): Promise<ByteSocket>;
  /**
   * Runs the TLS handshake as a client, after the server has agreed to it, and verifies as `tls.mode` asks.
   * On success the socket goes on as the TLS stream, without handlers; on failure it is closed. Until then it is the
   * transport's: what is written meanwhile would reach a server that nobody has verified.
   *
   * @throws PoolError as `connect`.
   */
  upgradeClient(
    socket: ByteSocket,
    tls: ServerTls,
    host: string,
    deadline: number,
  ): Promise<ByteSocket>;
  /** DER of the certificate that the peer of a TLS socket showed, for channel binding; undefined without TLS. */
  peerCertificate(socket: ByteSocket): Uint8Array | undefined;
  /** From a cryptographic source. */
  randomBytes(count: number): Uint8Array;
}
