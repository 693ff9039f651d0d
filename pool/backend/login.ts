// Logs in to a PostgreSQL server: PostgreSQL protocol, "Start-up". Believes the server nothing it can check.
//
//   connect, TLS ──► authenticating ──AuthenticationOk──► starting ──ReadyForQuery──► done
//                         │  ▲ SCRAM keys                     │
//                         ▼  │                                │
//                       deriving      any error, close or the deadline ──► failed
import { md5Response } from "#auth/passwords/md5.ts";
import { tlsServerEndPoint } from "#auth/scram/channel-binding.ts";
import { ScramClientExchange } from "#auth/scram/client-exchange.ts";
import type { Secret } from "#auth/secret.ts";
import { PoolError } from "../errors.ts";
import type { ByteSocket } from "../transport/socket.ts";
import { readErrorFields, readParameterStatus } from "../wire/backend-messages.ts";
import { FrameSplitter } from "../wire/frame-splitter.ts";
import { Backend, HEADER_BYTES, Status, WHOLE_FRAME_MAX } from "../wire/message-types.ts";
import { STARTUP_PACKET_MAX } from "../wire/startup-packet.ts";
import {
  acceptsProtocol,
  encodePassword,
  encodeSaslInitial,
  encodeSaslResponse,
  encodeStartup,
  readAuthentication,
  readBackendKey,
} from "./login-messages.ts";
import type { AuthenticationRequest, CancelKey } from "./login-messages.ts";
import { isUnixSocket, openServerSocket } from "./server-tls.ts";
import type { ServerSocketOptions } from "./server-tls.ts";

/** A real login takes about 2 KB; parameters and notices without end must not fill the memory until the deadline. */
const LOGIN_BYTES_MAX = 1_048_576;

export interface LoginOptions extends ServerSocketOptions {
  readonly dbname: string;
  readonly user: string;
  readonly password: Secret | undefined;
  /** Sent in the StartupMessage, besides user and database. */
  readonly parameters: Readonly<Record<string, string>>;
}

export interface LoggedInServer extends CancelKey {
  /** Paused at the border of a frame, so that nothing gets lost: set handlers, then resume. */
  readonly socket: ByteSocket;
  /** Every ParameterStatus so far; the caller's from now on. */
  readonly parameters: Map<string, string>;
}

/**
 * `deadline` covers everything from connect to ReadyForQuery. On failure the socket is closed.
 *
 * @throws PoolError ERR_SERVER_LOGIN_REFUSED with the server's SQLSTATE and its ErrorResponse as `serverError`, or with 08001
 *   when we refuse to go on; ERR_SERVER_PROTOCOL 08P01; ERR_CONNECT_TIMEOUT and ERR_CONNECT_FAILED 08001.
 */
export async function loginToServer(options: LoginOptions): Promise<LoggedInServer> {
  const { parameters, user, dbname } = options;
  const startup = encodeStartup({ ...parameters, user, database: dbname });
  if (startup === undefined || startup.length > STARTUP_PACKET_MAX) {
    throw refused("the startup parameters hold a NUL or are too long");
  }
  const socket = await openServerSocket(options);
  return new ServerLogin(options, socket).run(startup);
}

type PasswordRequest = Extract<AuthenticationRequest, { kind: "cleartext" | "md5" | "sasl" }>;

class ServerLogin {
  readonly #options: LoginOptions;
  readonly #socket: ByteSocket;
  readonly #splitter: FrameSplitter;
  readonly #parameters = new Map<string, string>();
  readonly #outcome = Promise.withResolvers<LoggedInServer>();
  #state: "authenticating" | "deriving" | "starting" | "done" | "failed" = "authenticating";
  /** A server asks for one method; a second one would be somebody fishing for the password in another form. */
  #hasAsked = false;
  #scram: ScramClientExchange | undefined;
  #key: CancelKey | undefined;
  #isReady = false;
  #receivedBytes = 0;

  constructor(options: LoginOptions, socket: ByteSocket) {
    this.#options = options;
    this.#socket = socket;
    const oversize = (): void => this.#violation("a message that is too long");
    this.#splitter = new FrameSplitter(
      {
        frame: (type, chunk, start, end) => this.#frame(type, chunk.subarray(start, end)),
        largeStart: oversize,
        largeBytes: oversize,
        violation: () => this.#violation("a message of an impossible length"),
      },
      WHOLE_FRAME_MAX,
    );
  }

  async run(startup: Uint8Array): Promise<LoggedInServer> {
    const { clock, deadline } = this.#options;
    const timer = clock.schedule(deadline - clock.now(), () => {
      const message = "the login to the server timed out";
      this.#fail(new PoolError("ERR_CONNECT_TIMEOUT", message, { sqlState: "08001" }));
    });
    this.#socket.setHandlers({
      data: (bytes) => this.#receive(bytes),
      drain: () => {},
      close: (cause) => {
        const message = "the server closed the connection during the login";
        this.#fail(new PoolError("ERR_CONNECT_FAILED", message, { sqlState: "08001", cause }));
      },
    });
    this.#socket.write(startup);
    this.#socket.resume();
    try {
      return await this.#outcome.promise;
    } finally {
      timer.cancel();
    }
  }

  #receive(bytes: Uint8Array): void {
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes > LOGIN_BYTES_MAX) {
      this.#violation("too much data");
      return;
    }
    this.#splitter.push(bytes);
    // A notice or the like may be right behind ReadyForQuery: the socket is handed over between two frames.
    if (this.#isReady && !this.#splitter.isMidFrame) this.#done();
  }

  #frame(type: number, frame: Uint8Array): void {
    switch (type) {
      case Backend.ERROR_RESPONSE:
        this.#fail(refusedByServer(frame));
        return;
      case Backend.NOTICE_RESPONSE:
        return;
      case Backend.AUTHENTICATION:
        this.#authenticate(readAuthentication(frame));
        return;
      case Backend.NEGOTIATE_PROTOCOL_VERSION:
        if (!acceptsProtocol(frame)) this.#fail(refused("the server refuses a protocol option"));
        return;
      default:
        if (this.#state === "starting") this.#start(type, frame);
        else this.#violation("a message out of order");
    }
  }

  #authenticate(request: AuthenticationRequest | undefined): void {
    if (request === undefined) {
      this.#violation("a malformed authentication request");
      return;
    }
    if (this.#state !== "authenticating") {
      this.#violation("an authentication request out of order");
      return;
    }
    switch (request.kind) {
      case "ok":
        if (this.#scram !== undefined && !this.#scram.isVerified) {
          this.#violation("a login accepted without the server's own proof");
          return;
        }
        this.#state = "starting";
        return;
      case "sasl-continue":
        void this.#continueScram(request.data);
        return;
      case "sasl-final":
        this.#runScram((scram) => scram.finish(request.data));
        return;
      case "unsupported": {
        const message = `the server asks for authentication method ${request.code}, which is not supported`;
        this.#fail(new PoolError("ERR_NOT_SUPPORTED", message, { sqlState: "08001" }));
        return;
      }
      case "cleartext":
      case "md5":
      case "sasl":
        this.#answerWithPassword(request);
    }
  }

  #answerWithPassword(request: PasswordRequest): void {
    const { password, user, transport } = this.#options;
    if (this.#hasAsked) {
      this.#violation("a second authentication method");
      return;
    }
    this.#hasAsked = true;
    if (password === undefined) {
      this.#fail(refused("the server asks for a password, but none is configured"));
      return;
    }
    switch (request.kind) {
      case "cleartext":
        this.#answerCleartext(password);
        return;
      case "md5": {
        const response = md5Response(user, password, request.salt);
        this.#socket.write(encodePassword(new TextEncoder().encode(response)));
        return;
      }
      case "sasl": {
        const certificate = transport.peerCertificate(this.#socket);
        const scram = new ScramClientExchange({
          password,
          randomBytes: (count) => transport.randomBytes(count),
          channelBinding: certificate && tlsServerEndPoint(certificate),
        });
        this.#scram = scram;
        this.#runScram(() => {
          const { mechanism, message } = scram.start(request.mechanisms);
          this.#socket.write(encodeSaslInitial(mechanism, message));
        });
      }
    }
  }

  #answerCleartext(password: Secret): void {
    const isLocal = isUnixSocket(this.#options.server) || isLoopback(this.#socket.remoteAddress);
    if (!this.#socket.isSecure && !isLocal) {
      this.#fail(refused("the server asks for the password in clear over a link without TLS"));
      return;
    }
    const bytes = password.revealBytes();
    if (bytes.includes(0)) this.#fail(refused("the configured password holds a NUL"));
    else this.#socket.write(encodePassword(bytes));
  }

  async #continueScram(serverFirst: Uint8Array): Promise<void> {
    const scram = this.#scram;
    if (scram === undefined) {
      this.#violation("a SASL message out of order");
      return;
    }
    this.#state = "deriving";
    try {
      const message = await scram.continue(serverFirst);
      if (this.#state !== "deriving") return;
      this.#state = "authenticating";
      this.#socket.write(encodeSaslResponse(message));
    } catch (cause) {
      this.#violation("a SASL exchange that does not hold", cause);
    }
  }

  #runScram(step: (scram: ScramClientExchange) => void): void {
    const scram = this.#scram;
    if (scram === undefined) {
      this.#violation("a SASL message out of order");
      return;
    }
    try {
      step(scram);
    } catch (cause) {
      this.#violation("a SASL exchange that does not hold", cause);
    }
  }

  #start(type: number, frame: Uint8Array): void {
    if (type === Backend.PARAMETER_STATUS) {
      const parameter = readParameterStatus(frame);
      if (parameter === undefined) this.#violation("a malformed ParameterStatus");
      else this.#parameters.set(parameter[0], parameter[1]);
    } else if (this.#isReady) {
      this.#violation("a message behind ReadyForQuery");
    } else if (type === Backend.BACKEND_KEY_DATA) {
      this.#key = readBackendKey(frame);
      if (this.#key === undefined) this.#violation("a malformed BackendKeyData");
    } else if (type === Backend.READY_FOR_QUERY) {
      this.#ready(frame);
    } else {
      this.#violation("a message out of order");
    }
  }

  #ready(frame: Uint8Array): void {
    if (frame.length !== HEADER_BYTES + 1 || frame[HEADER_BYTES] !== Status.IDLE) {
      this.#violation("a malformed ReadyForQuery");
      return;
    }
    // Without a key no statement on this connection could be cancelled.
    if (this.#key === undefined) {
      this.#violation("no BackendKeyData");
      return;
    }
    this.#isReady = true;
  }

  #done(): void {
    if (this.#state !== "starting" || this.#key === undefined) return;
    this.#state = "done";
    this.#socket.pause();
    this.#outcome.resolve({
      ...this.#key,
      socket: this.#socket,
      parameters: this.#parameters,
    });
  }

  #violation(what: string, cause?: unknown): void {
    const message = `the server broke the protocol during the login: ${what}`;
    this.#fail(new PoolError("ERR_SERVER_PROTOCOL", message, { sqlState: "08P01", cause }));
  }

  #fail(error: PoolError): void {
    if (this.#state === "done" || this.#state === "failed") return;
    this.#state = "failed";
    this.#splitter.suspend();
    this.#socket.destroy();
    this.#outcome.reject(error);
  }
}

function refused(message: string): PoolError {
  return new PoolError("ERR_SERVER_LOGIN_REFUSED", message, { sqlState: "08001" });
}

function refusedByServer(frame: Uint8Array): PoolError {
  const fields = readErrorFields(frame);
  const message = `the server refused the login: ${fields.get("M") ?? "no reason given"}`;
  return new PoolError("ERR_SERVER_LOGIN_REFUSED", message, {
    sqlState: fields.get("C") ?? "08004",
    severity: "FATAL",
    serverError: frame.slice(),
  });
}

/** 127.0.0.0/8 and ::1, also in IPv6 notation. */
function isLoopback(address: string): boolean {
  const ipv4 = address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
  return address === "::1" || /^127\.\d+\.\d+\.\d+$/.test(ipv4);
}
