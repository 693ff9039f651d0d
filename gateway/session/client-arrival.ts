// A client from its first byte to the end of its login: startup packets, requests for encryption, login messages. Dropped then: an idle client has none of it.
import type { AuthFailure, Identity } from "#auth/identity.ts";
import type { Secret } from "#auth/secret.ts";
import { PoolError } from "#pool/errors.ts";
import type { Timer } from "#pool/time/clock.ts";
import type { ByteChannel } from "#pool/transport/socket.ts";
import { encodeNegotiateProtocolVersion } from "#pool/wire/backend-messages.ts";
import { Frontend, concatBytes } from "#pool/wire/message-types.ts";
import {
  type StartupMessage,
  readStartupPacket,
  startupPacketSize,
} from "#pool/wire/startup-packet.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { LoginNegotiation, type LoginStep } from "./login-negotiation.ts";
import { type StartupRequest, readStartupRequest } from "./startup-request.ts";

/** "N": no encryption on offer ("SSL Session Encryption", "GSSAPI Session Encryption"). */
const NOT_OFFERED = new Uint8Array([0x4e]);
/** The protocol version we speak, 3.0. */
const PROTOCOL_3_0 = 3 << 16;

export const TOO_MANY_CLIENTS = "no more connections allowed (max_client_conn)";

export interface ArrivalOptions {
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

/** The session that the client is to have. */
export interface ArrivalOwner {
  /** To be cut into frames. */
  push(bytes: Uint8Array): void;
  suspendInput(): void;
  resumeInput(): void;
  /** The arrival is over unless the session was closed meanwhile. Throws a PoolError when no server will have the client. */
  accepted(identity: Identity, parameters: StartupRequest["parameters"]): Promise<void>;
  /** Says why, then closes. */
  shutdown(sqlState: string, message: string): void;
  close(): void;
}

/** `startup` ─► `login` ─► `over`, and from anywhere to `over`. */
type Phase = "startup" | "login" | "over";

export class ClientArrival {
  readonly options: ArrivalOptions;
  readonly #owner: ArrivalOwner;
  readonly #timer: Timer;
  #phase: Phase = "startup";
  /** Bytes of an incomplete startup packet. */
  #startup: Uint8Array | undefined;
  #hasAskedTls = false;
  #hasAskedGss = false;
  #request: StartupRequest | undefined;
  #negotiation: LoginNegotiation | undefined;

  constructor(options: ArrivalOptions, owner: ArrivalOwner) {
    this.options = options;
    this.#owner = owner;
    const { environment, config } = options.context;
    this.#timer = environment.clock.schedule(config.gateway.client_login_timeout * 1_000, () => {
      owner.shutdown("57014", "canceling authentication due to timeout");
    });
  }

  /** The login is complete, or the session has ended. */
  stop(): void {
    this.#phase = "over";
    this.#timer.cancel();
  }

  data(bytes: Uint8Array): void {
    if (this.#phase === "startup") this.#startupBytes(bytes);
    else this.#owner.push(bytes);
  }

  /** A whole message behind the startup packet. */
  frame(type: number, bytes: Uint8Array): void {
    if (this.#phase !== "login") return;
    if (type === Frontend.TERMINATE) {
      this.#owner.close();
      return;
    }
    if (type !== Frontend.PASSWORD || this.#negotiation === undefined) {
      this.#owner.shutdown("08P01", `expected password response, got message type ${type}`);
      return;
    }
    this.#await(this.#negotiation.password(bytes));
  }

  #startupBytes(bytes: Uint8Array): void {
    const all = this.#startup === undefined ? bytes : concatBytes([this.#startup, bytes]);
    this.#startup = undefined;
    const size = startupPacketSize(all);
    if (size === "invalid") {
      this.#owner.shutdown("08P01", "invalid length of startup packet");
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
        this.#owner.shutdown("08P01", packet.reason);
        return;
      case "cancel":
        this.options.context.cancels.request(packet, this.options.remoteAddress);
        this.#owner.close();
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
      this.#owner.shutdown("08P01", "unexpected data after an encryption request");
      return;
    }
    if (kind === "ssl") this.#hasAskedTls = true;
    else this.#hasAskedGss = true;
    const { startTls, channel, context } = this.options;
    if (kind === "gssenc" || startTls === undefined) {
      channel.write(NOT_OFFERED);
      return;
    }
    startTls().catch((error: unknown) => {
      context.log.info("TLS handshake failed", { error });
      this.#owner.close();
    });
  }

  #begin(message: StartupMessage, rest: Uint8Array): void {
    const { context, channel, door, bearer, isSurplus } = this.options;
    if (isSurplus === true) {
      this.#owner.shutdown("53300", TOO_MANY_CLIENTS);
      return;
    }
    const startup = readStartupRequest(message);
    if (!startup.ok) {
      this.#owner.shutdown(startup.sqlState, startup.message);
      return;
    }
    const { request } = startup;
    if (!context.clusters.has(request.database)) {
      this.#owner.shutdown("3D000", `database "${request.database}" does not exist`);
      return;
    }
    if (message.protocolMinor > 0 || request.unknownOptions.length > 0) {
      channel.write(encodeNegotiateProtocolVersion(PROTOCOL_3_0, request.unknownOptions));
    }
    this.#request = request;
    this.#phase = "login";
    this.#negotiation = new LoginNegotiation(
      context,
      {
        transport: door,
        database: request.database,
        user: request.user,
        isSecure: this.options.isSecure,
        // The unmodified WebSocket client sends its password unasked, in the clear.
        cleartextOnly: door === "websocket",
      },
      (bytes) => channel.write(bytes),
    );
    this.#await(this.#negotiation.begin(bearer));
    this.#owner.push(rest);
  }

  /** Nothing more is read from the client until the step is done. */
  #await(step: Promise<LoginStep>): void {
    this.#owner.suspendInput();
    step
      .then(async (outcome) => {
        if (this.#phase !== "login") return;
        if (outcome.kind === "refused") this.#refuse(outcome.failure);
        if (outcome.kind === "accepted") await this.#accepted(outcome.identity);
        this.#owner.resumeInput();
      })
      .catch((error: unknown) => this.#failed(error));
  }

  #refuse({ reason, sqlState, clientMessage }: AuthFailure): void {
    const { context, door, remoteAddress: address } = this.options;
    context.log.info("login refused", { door, address, reason });
    this.#owner.shutdown(sqlState, clientMessage);
  }

  async #accepted(identity: Identity): Promise<void> {
    if (this.#request === undefined) {
      throw new Error("a login was accepted before its startup message");
    }
    await this.#owner.accepted(identity, this.#request.parameters);
  }

  #failed(error: unknown): void {
    if (error instanceof PoolError) {
      this.#owner.shutdown(error.sqlState, error.message);
      return;
    }
    this.options.context.environment.reportBug(error);
    this.#owner.shutdown("XX000", "internal error");
  }
}
