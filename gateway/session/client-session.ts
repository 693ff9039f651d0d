// One client over a byte channel, wire or WebSocket /v2: startup packets, login, then a relay until it leaves.
import type { AuthFailure, Identity } from "#auth/identity.ts";
import type { Secret } from "#auth/secret.ts";
import { PoolError } from "#pool/errors.ts";
import { Relay } from "#pool/session/relay.ts";
import type { RelayClient } from "#pool/session/relay-environment.ts";
import type { Timer } from "#pool/time/clock.ts";
import type { ByteChannel, SocketHandlers } from "#pool/transport/socket.ts";
import {
  encodeErrorResponse,
  encodeNegotiateProtocolVersion,
} from "#pool/wire/backend-messages.ts";
import { FrameSplitter, type FrameSink } from "#pool/wire/frame-splitter.ts";
import { Frontend, concatBytes } from "#pool/wire/message-types.ts";
import {
  type StartupMessage,
  readStartupPacket,
  startupPacketSize,
} from "#pool/wire/startup-packet.ts";
import type { CancelKey } from "./cancel-registry.ts";
import { type GatewayContext, resolveIdentity } from "./gateway-context.ts";
import { LoginNegotiation, type LoginStep, encodeGreeting } from "./login-negotiation.ts";
import { type StartupRequest, readStartupRequest } from "./startup-request.ts";

/** "N": no encryption on offer ("SSL Session Encryption", "GSSAPI Session Encryption"). */
const NOT_OFFERED = new Uint8Array([0x4e]);
/** The protocol version we speak, 3.0. */
const PROTOCOL_3_0 = 3 << 16;

export const TOO_MANY_CLIENTS = "no more connections allowed (max_client_conn)";

export interface ClientSessionOptions {
  readonly context: GatewayContext;
  readonly channel: ByteChannel;
  readonly door: "postgres" | "websocket";
  /**
   * Nobody on the way can read what is sent: TLS, a loopback peer, or a trusted proxy that says so. Read when the login begins, for
   * the startup message may come in one piece with the end of a TLS handshake.
   */
  readonly isSecure: boolean;
  readonly remoteAddress: string;
  /** A token that came with the link, so that no password is asked for. */
  readonly bearer: Secret | undefined;
  /** Came when max_client_conn was reached: it may cancel somebody's query, and is refused when it wants to log in. */
  readonly isSurplus?: boolean;
  /** Answers an SSLRequest and takes the link to TLS; absent where there is none. */
  readonly startTls?: () => Promise<void>;
}

/** What a suspended client may still send before it is not read any more. */
const HELD_BYTES_MAX = 65_536;

/** `startup` ─► `login` ─► `ready` ─► `closed`, and from anywhere to `closed`. */
type Phase = "startup" | "login" | "ready" | "closed";

export class ClientSession implements SocketHandlers, FrameSink, RelayClient {
  readonly #options: ClientSessionOptions;
  readonly #splitter: FrameSplitter;
  #phase: Phase = "startup";
  /** Bytes of an incomplete startup packet. */
  #startup: Uint8Array | undefined;
  #hasAskedTls = false;
  #hasAskedGss = false;
  #loginTimer: Timer | undefined;
  #request: StartupRequest | undefined;
  #negotiation: LoginNegotiation | undefined;
  /** A client that pipelines its password does so even where none is asked for. */
  #mayIgnorePassword = false;
  #relay: Relay | undefined;
  #cancelKey: CancelKey | undefined;
  #countedBytes = 0;
  /** Arrived while input was suspended. */
  #heldBytes = 0;
  #lastActivity: number;

  /** The caller has entered the client into the census; this leaves it. */
  constructor(options: ClientSessionOptions) {
    this.#options = options;
    const { clock } = options.context.environment;
    this.#lastActivity = clock.now();
    this.#splitter = new FrameSplitter(this, options.context.config.gateway.max_packet_size);
    const timeoutMs = options.context.config.gateway.client_login_timeout * 1_000;
    this.#loginTimer = clock.schedule(timeoutMs, () => {
      this.#fatal("57014", "canceling authentication due to timeout");
    });
    options.context.sessions.add(this);
  }

  /** Is being served, or is inside a transaction. */
  get isBusy(): boolean {
    return this.#relay?.isBusy === true;
  }

  /** Clock milliseconds since the client last sent or was sent something; 0 while it is being served. */
  idleMs(now: number): number {
    if (this.#phase !== "ready" || this.isBusy) return 0;
    return now - this.#lastActivity;
  }

  /** Says why, then closes. */
  shutdown(sqlState: string, message: string): void {
    this.#fatal(sqlState, message);
  }

  // SocketHandlers.

  data(bytes: Uint8Array): void {
    switch (this.#phase) {
      case "startup":
        this.#startupBytes(bytes);
        return;
      case "login":
        this.#push(bytes);
        return;
      case "ready":
        this.#push(bytes);
        this.#lastActivity = this.#options.context.environment.clock.now();
        this.#relay?.endOfInput();
        return;
      case "closed":
    }
  }

  drain(): void {
    this.#account();
    this.#relay?.drained();
  }

  close(): void {
    this.#leave(false);
  }

  // FrameSink.

  frame(type: number, chunk: Uint8Array, start: number, end: number): void {
    if (this.#phase === "login") {
      this.#loginFrame(type, chunk.subarray(start, end));
    } else if (this.#phase === "ready") {
      if (type === Frontend.PASSWORD && this.#mayIgnorePassword) {
        this.#mayIgnorePassword = false;
        return;
      }
      this.#mayIgnorePassword = false;
      if (type === Frontend.TERMINATE) this.#leave(true);
      else this.#relay?.frame(type, chunk, start, end);
    }
  }

  largeStart(type: number, prefix: Uint8Array): void {
    if (this.#phase === "ready") this.#relay?.largeStart(type, prefix);
    else this.#fatal("08P01", "message is too long before the login is complete");
  }

  largeBytes(bytes: Uint8Array, isLast: boolean): void {
    this.#relay?.largeBytes(bytes, isLast);
  }

  violation(reason: string): void {
    this.#fatal("08P01", reason);
  }

  // RelayClient.

  forward(bytes: Uint8Array): void {
    this.#options.channel.write(bytes);
    // The end of a long query is no end of a long idleness.
    this.#lastActivity = this.#options.context.environment.clock.now();
    this.#account();
  }

  get queuedBytes(): number {
    return this.#options.channel.queuedBytes;
  }

  suspendInput(): void {
    this.#splitter.suspend();
  }

  resumeInput(): void {
    if (this.#phase === "closed") return;
    this.#heldBytes = 0;
    this.#options.channel.resume();
    this.#splitter.resume();
    this.#relay?.endOfInput();
  }

  abort(error: Uint8Array | undefined): void {
    if (this.#phase === "closed") return;
    if (error === undefined) {
      this.#leave(false);
      this.#options.channel.destroy();
      return;
    }
    this.#options.channel.write(error);
    this.#leave(false);
  }

  /**
   * Whoever waits is read on a little: a socket that is not read does not tell that its client has gone, and its place in the queue
   * would stay taken.
   */
  #push(bytes: Uint8Array): void {
    this.#splitter.push(bytes);
    if (!this.#splitter.isSuspended) return;
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > HELD_BYTES_MAX) this.#options.channel.pause();
  }

  // Startup.

  #startupBytes(bytes: Uint8Array): void {
    const all = this.#startup === undefined ? bytes : concatBytes([this.#startup, bytes]);
    this.#startup = undefined;
    const size = startupPacketSize(all);
    if (size === "invalid") {
      this.#fatal("08P01", "invalid length of startup packet");
      return;
    }
    if (size === "incomplete" || all.length < size) {
      this.#startup = all;
      return;
    }
    const packet = readStartupPacket(all.subarray(0, size));
    const rest = all.subarray(size);
    switch (packet.kind) {
      case "invalid":
        this.#fatal("08P01", packet.reason);
        return;
      case "cancel":
        this.#options.context.cancels.request(packet, this.#options.remoteAddress);
        this.#leave(false);
        return;
      case "ssl":
      case "gssenc":
        this.#encryption(packet.kind, rest);
        return;
      case "startup":
        this.#begin(packet, rest);
    }
  }

  /**
   * Bytes behind the request were sent before its answer: taken for part of an encrypted stream they would be trusted as such, the
   * fault of CVE-2021-23214.
   */
  #encryption(kind: "ssl" | "gssenc", rest: Uint8Array): void {
    const isAgain = kind === "ssl" ? this.#hasAskedTls : this.#hasAskedGss;
    if (rest.length > 0 || isAgain) {
      this.#fatal("08P01", "unexpected data after an encryption request");
      return;
    }
    if (kind === "ssl") this.#hasAskedTls = true;
    else this.#hasAskedGss = true;
    const { startTls, channel, context } = this.#options;
    if (kind === "gssenc" || startTls === undefined) {
      channel.write(NOT_OFFERED);
      return;
    }
    startTls().catch((error: unknown) => {
      context.log.info("TLS handshake failed", { error });
      this.#leave(false);
    });
  }

  #begin(message: StartupMessage, rest: Uint8Array): void {
    const { context, door, bearer, isSurplus } = this.#options;
    if (isSurplus === true) {
      this.#fatal("53300", TOO_MANY_CLIENTS);
      return;
    }
    const startup = readStartupRequest(message);
    if (!startup.ok) {
      this.#fatal(startup.sqlState, startup.message);
      return;
    }
    const { request } = startup;
    if (!context.clusters.has(request.database)) {
      this.#fatal("3D000", `database "${request.database}" does not exist`);
      return;
    }
    if (message.protocolMinor > 0 || request.unknownOptions.length > 0) {
      this.#send(encodeNegotiateProtocolVersion(PROTOCOL_3_0, request.unknownOptions));
    }
    this.#request = request;
    this.#phase = "login";
    this.#mayIgnorePassword = bearer !== undefined;
    this.#negotiation = new LoginNegotiation(
      context,
      {
        transport: door,
        database: request.database,
        user: request.user,
        isSecure: this.#options.isSecure,
        // The unmodified WebSocket client sends its password unasked, in the clear.
        cleartextOnly: door === "websocket",
      },
      (bytes) => this.#send(bytes),
    );
    this.#await(this.#negotiation.begin(bearer));
    this.#push(rest);
  }

  // Login.

  #loginFrame(type: number, bytes: Uint8Array): void {
    if (type === Frontend.TERMINATE) {
      this.#leave(true);
      return;
    }
    if (type !== Frontend.PASSWORD || this.#negotiation === undefined) {
      this.#fatal("08P01", `expected password response, got message type ${type}`);
      return;
    }
    this.#await(this.#negotiation.password(bytes));
  }

  /** Nothing more is read from the client until the step is done. */
  #await(step: Promise<LoginStep>): void {
    this.suspendInput();
    step
      .then(async (outcome) => {
        if (this.#phase !== "login") return;
        if (outcome.kind === "refused") this.#refuse(outcome.failure);
        if (outcome.kind === "accepted") await this.#accepted(outcome.identity);
        this.resumeInput();
      })
      .catch((error: unknown) => this.#failed(error));
  }

  #refuse({ reason, sqlState, clientMessage }: AuthFailure): void {
    const { context, door, remoteAddress: address } = this.#options;
    context.log.info("login refused", { door, address, reason });
    this.#fatal(sqlState, clientMessage);
  }

  async #accepted(identity: Identity): Promise<void> {
    const { context } = this.#options;
    const request = this.#request;
    if (request === undefined) throw new Error("a login was accepted before its startup message");
    const { relay } = resolveIdentity(context, identity, request.parameters);
    const reported = await context.greetings.get(relay);
    if (this.#phase !== "login") return;
    this.#phase = "ready";
    this.#loginTimer?.cancel();
    this.#loginTimer = undefined;
    this.#negotiation = undefined;
    this.#request = undefined;
    context.clients.loggedIn();
    this.#relay = new Relay(this, context.environment, relay, []);
    this.#cancelKey = context.cancels.register(() => this.#relay?.cancel());
    this.#send(encodeGreeting(reported, this.#cancelKey));
  }

  #failed(error: unknown): void {
    if (error instanceof PoolError) {
      this.#fatal(error.sqlState, error.message);
      return;
    }
    this.#options.context.environment.reportBug(error);
    this.#fatal("XX000", "internal error");
  }

  #send(bytes: Uint8Array): void {
    this.#options.channel.write(bytes);
  }

  #fatal(sqlState: string, message: string): void {
    if (this.#phase === "closed") return;
    this.#send(encodeErrorResponse({ severity: "FATAL", sqlState, message }));
    this.#leave(false);
  }

  /** Closes the channel behind what was sent. Everything that counts this client forgets it. */
  #leave(isOrderly: boolean): void {
    if (this.#phase === "closed") return;
    const { context, channel, isSurplus } = this.#options;
    const wasLoggedIn = this.#phase === "ready";
    this.#phase = "closed";
    this.#loginTimer?.cancel();
    this.#splitter.suspend();
    this.#relay?.leave(isOrderly);
    this.#relay = undefined;
    if (this.#cancelKey !== undefined) context.cancels.unregister(this.#cancelKey);
    context.environment.output.usedBytes -= this.#countedBytes;
    this.#countedBytes = 0;
    context.sessions.delete(this);
    if (isSurplus === true) context.clients.leaveSurplus();
    else context.clients.leave(wasLoggedIn);
    channel.end();
  }

  /** Keeps the total of unread answers over all clients. */
  #account(): void {
    if (this.#phase === "closed") return;
    const { queuedBytes } = this.#options.channel;
    if (queuedBytes === this.#countedBytes) return;
    this.#options.context.environment.output.usedBytes += queuedBytes - this.#countedBytes;
    this.#countedBytes = queuedBytes;
  }
}
