// Opens a byte stream to a server, with TLS as its sslmode asks: PostgreSQL protocol, "SSL Session Encryption".
import { PoolError } from "../errors.ts";
import type { Server } from "../routing/server.ts";
import type { Clock } from "../time/clock.ts";
import type { ByteSocket } from "../transport/socket.ts";
import type { Transport } from "../transport/transport.ts";

/** Length 8 and the code 80877103. */
const SSL_REQUEST = new Uint8Array([0, 0, 0, 8, 4, 210, 22, 47]);

const ACCEPTED = 0x53;
const REFUSED = 0x4e;
const ERROR_RESPONSE = 0x45;

export interface ServerSocketOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly server: Server;
  /** Clock milliseconds, over everything. */
  readonly deadline: number;
}

/** True when the server's address is the folder of a Unix socket; TLS is not spoken there, as in libpq. */
export function isUnixSocket(server: Server): boolean {
  return server.address.host.startsWith("/");
}

/**
 * The socket may be paused: set handlers, then resume. Nothing has been read past the server's answer about TLS.
 *
 * @throws PoolError 08001 when the server can't be reached, refuses TLS that the mode requires, or shows a certificate that
 *   the mode refuses; 08P01 when it does not follow the protocol.
 */
export async function openServerSocket(options: ServerSocketOptions): Promise<ByteSocket> {
  const { transport, server, deadline } = options;
  const socket = await transport.connect(server.address, deadline);
  if (server.tls.mode === "disable" || isUnixSocket(server)) return socket;
  if (await requestTls(socket, options)) {
    return transport.upgradeClient(socket, server.tls, server.address.host, deadline);
  }
  if (server.tls.mode === "prefer") return socket;
  socket.destroy();
  const message = "the server does not support TLS, but sslmode requires it";
  throw new PoolError("ERR_CONNECT_FAILED", message, { sqlState: "08001" });
}

/** Resolves to the server's answer: true for TLS. Rejects with the socket closed. */
function requestTls(socket: ByteSocket, options: ServerSocketOptions): Promise<boolean> {
  const { clock, deadline } = options;
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const fail = (error: PoolError): void => {
    timer.cancel();
    socket.destroy();
    reject(error);
  };
  const timer = clock.schedule(deadline - clock.now(), () => {
    const message = "the server's answer to the TLS request timed out";
    fail(new PoolError("ERR_CONNECT_TIMEOUT", message, { sqlState: "08001" }));
  });
  socket.setHandlers({
    data: (bytes) => {
      const error = violationOf(bytes);
      if (error !== undefined) {
        fail(error);
        return;
      }
      timer.cancel();
      // Nothing may be read into these handlers any more: what comes next is for TLS or for the login.
      socket.pause();
      resolve(bytes[0] === ACCEPTED);
    },
    drain: () => {},
    close: (cause) => {
      const message = "the server closed the connection instead of answering the TLS request";
      fail(new PoolError("ERR_CONNECT_FAILED", message, { sqlState: "08001", cause }));
    },
  });
  socket.write(SSL_REQUEST);
  return promise;
}

function violationOf(bytes: Uint8Array): PoolError | undefined {
  if (bytes[0] === ERROR_RESPONSE) {
    // Its text is not shown: nobody has proven yet to be the server (CVE-2024-10977).
    const message = "the server answered the TLS request with an error";
    return new PoolError("ERR_CONNECT_FAILED", message, { sqlState: "08001" });
  }
  if (bytes[0] !== ACCEPTED && bytes[0] !== REFUSED) {
    const message = "the server's answer to the TLS request is none that the protocol knows";
    return new PoolError("ERR_SERVER_PROTOCOL", message, { sqlState: "08P01" });
  }
  if (bytes.length > 1) {
    // Bytes in clear behind the answer could be taken for the first bytes of the encrypted stream (CVE-2021-23222).
    const message = "the server sent unencrypted data behind its answer to the TLS request";
    return new PoolError("ERR_SERVER_PROTOCOL", message, { sqlState: "08P01" });
  }
  return undefined;
}
