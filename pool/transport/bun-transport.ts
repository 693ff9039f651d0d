// The real transport: connects, listens and adds TLS with Bun's sockets.
import { randomBytes } from "node:crypto";
import type { Socket, SocketHandler, TLSOptions } from "bun";
import { PoolError } from "../errors.ts";
import type { ServerTls } from "../routing/server.ts";
import type { Clock } from "../time/clock.ts";
import { BunSocket, errorCode } from "./bun-socket.ts";
import type { ByteSocket, HostAddress } from "./socket.ts";
import type { Transport } from "./transport.ts";
import { TurnGatherer } from "./turn-gatherer.ts";

/** PostgreSQL's protocol name in ALPN's wire form, a length byte before each name: Bun does not add it. */
const ALPN_PROTOCOLS = "\x0apostgresql";

export interface Listener {
  /** With the real port when port 0 was asked for. */
  readonly address: HostAddress;
  /** Stops accepting; accepted sockets stay open. */
  stop(): void;
}

export interface ListenOptions {
  readonly address: HostAddress;
  /**
   * A socket that is bound to `address` and listens already, inherited from a supervisor. Workers that accept from one
   * socket lose no connection of its backlog when one of them stops. Owned, and closed, by the listener.
   */
  readonly fd?: number;
}

/** What TLS as a server needs, in PEM. */
export interface CertificateAndKey {
  readonly key: string;
  readonly cert: string;
}

// One object for all sockets: a connection costs no closures. After an upgrade Bun goes on calling these with ciphertext.
const PLAIN_HANDLERS: SocketHandler<BunSocket> = {
  binaryType: "uint8array",
  data: (native, bytes: Uint8Array) => {
    if (native.data.layer === "plain") native.data.receive(bytes);
  },
  drain: (native) => {
    if (native.data.layer === "plain") native.data.flush();
  },
  close: (native, error) => {
    if (native.data.layer === "plain") native.data.closed(error);
  },
  error: (native, error) => {
    if (native.data.layer === "plain") native.data.fail(error);
  },
};

const TLS_HANDLERS: SocketHandler<BunSocket> = {
  binaryType: "uint8array",
  data: (native, bytes: Uint8Array) => native.data.receive(bytes),
  drain: (native) => native.data.flush(),
  close: (native, error) => native.data.closed(error),
  error: (native, error) => native.data.fail(error),
  handshake: (native, isSuccess, error) => native.data.handshakeDone(isSuccess, error),
};

export class BunTransport implements Transport {
  readonly #clock: Clock;
  readonly #gatherer = new TurnGatherer();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  connect(address: HostAddress, deadline: number): Promise<ByteSocket> {
    const { promise, resolve, reject } = Promise.withResolvers<ByteSocket>();
    const owner = new BunSocket(this.#clock, this.#gatherer, false);
    let isLate = false;
    const timer = this.#clock.schedule(deadline - this.#clock.now(), () => {
      isLate = true;
      reject(
        new PoolError("ERR_CONNECT_TIMEOUT", "connecting to the server timed out", {
          sqlState: "08001",
        }),
      );
    });
    const opened = (native: Socket<BunSocket>): void => {
      timer.cancel();
      // Bun has no way to give up a connect: one that succeeds after its deadline is closed instead.
      if (isLate) {
        native.terminate();
        return;
      }
      owner.attach(native, address.host.startsWith("/") ? address.host : native.remoteAddress);
      resolve(owner);
    };
    const failed = (cause: unknown): void => {
      timer.cancel();
      const message = `could not connect to the server: ${errorCode(cause)}`;
      reject(new PoolError("ERR_CONNECT_FAILED", message, { sqlState: "08001", cause }));
    };
    const socket = { ...PLAIN_HANDLERS, open: opened };
    if (address.host.startsWith("/")) {
      const unix = `${address.host}/.s.PGSQL.${address.port}`;
      Bun.connect<BunSocket>({ unix, data: owner, socket }).catch(failed);
    } else {
      const { host: hostname, port } = address;
      Bun.connect<BunSocket>({ hostname, port, data: owner, socket }).catch(failed);
    }
    return promise;
  }

  async upgradeClient(
    socket: ByteSocket,
    tls: ServerTls,
    host: string,
    deadline: number,
  ): Promise<ByteSocket> {
    const owner = toBunSocket(socket);
    const options: TLSOptions = {
      // Always explicit: the default follows an environment variable.
      rejectUnauthorized: tls.mode === "verify-full",
      ALPNProtocols: ALPN_PROTOCOLS,
      serverName: host,
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    };
    const error = await owner.upgrade((native) => {
      const [, upgraded] = native.upgradeTLS({ data: owner, tls: options, socket: TLS_HANDLERS });
      return upgraded;
    }, deadline);
    if (error === null || isAcceptable(error, tls)) return owner;
    owner.destroy();
    const message = `the server's certificate was refused: ${errorCode(error)}`;
    throw new PoolError("ERR_CONNECT_FAILED", message, { sqlState: "08001", cause: error });
  }

  /**
   * The TLS handshake as a server, for a client that asked for it and was told `S`. A client that offers no ALPN passes.
   *
   * @throws PoolError 08001 when the handshake fails or is late, 08P01 when unencrypted bytes came before it; the socket
   *   is closed then.
   */
  async upgradeServer(
    socket: ByteSocket,
    certificate: CertificateAndKey,
    deadline: number,
  ): Promise<ByteSocket> {
    const owner = toBunSocket(socket);
    // `isServer` is not in Bun's types; a variable may hold more than the parameter asks for.
    const options = {
      data: owner,
      isServer: true,
      tls: {
        key: certificate.key,
        cert: certificate.cert,
        ALPNProtocols: ALPN_PROTOCOLS,
        requestCert: false,
        rejectUnauthorized: false,
      },
      socket: TLS_HANDLERS,
    };
    await owner.upgrade((native) => native.upgradeTLS(options)[1], deadline);
    return owner;
  }

  /** Calls `accept` for each connection, which does not read until its handlers are set. */
  listen(options: ListenOptions, accept: (socket: ByteSocket) => void): Listener {
    const { host: hostname, port } = options.address;
    let latestAddress = "";
    const socket: SocketHandler<BunSocket> = {
      ...PLAIN_HANDLERS,
      open: (native) => {
        const owner = new BunSocket(this.#clock, this.#gatherer, true);
        native.data = owner;
        // Neighbours mostly come from one proxy: 10,000 idle ones then have one string.
        if (native.remoteAddress !== latestAddress) latestAddress = native.remoteAddress;
        owner.attach(native, latestAddress);
        accept(owner);
      },
    };
    if (options.fd !== undefined) {
      // `fd` is neither documented nor in Bun's types. It wins over the address, which is there so that a runtime that
      // ignores it fails on the address in use instead of listening elsewhere.
      const inherited = { fd: options.fd, hostname, port, socket };
      const listener = Bun.listen<BunSocket>(inherited);
      return { address: options.address, stop: () => listener.stop() };
    }
    const listener = Bun.listen<BunSocket>({ hostname, port, socket });
    return { address: { host: hostname, port: listener.port }, stop: () => listener.stop() };
  }

  peerCertificate(socket: ByteSocket): Uint8Array | undefined {
    return toBunSocket(socket).peerCertificate;
  }

  randomBytes(count: number): Uint8Array {
    return Uint8Array.from(randomBytes(count));
  }
}

/** `verify-ca` trusts a certificate of any host, and Bun reports a wrong host only when the chain was found right. */
function isAcceptable(error: Error, tls: ServerTls): boolean {
  if (tls.mode === "verify-ca") return errorCode(error) === "ERR_TLS_CERT_ALTNAME_INVALID";
  return tls.mode === "require" || tls.mode === "prefer";
}

function toBunSocket(socket: ByteSocket): BunSocket {
  if (socket instanceof BunSocket) return socket;
  throw new TypeError("this socket was not made by this transport");
}
