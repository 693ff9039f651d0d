// One client over a byte channel, wire or WebSocket /v2: an arrival up to its login, then a relay until it leaves.
import type { Identity } from "#auth/identity.ts";
import type { Position } from "#pool/consistency/position.ts";
import { Relay } from "#pool/session/relay.ts";
import type { RelayClient, RelayIdentity } from "#pool/session/relay-environment.ts";
import type { ByteChannel, SocketHandlers } from "#pool/transport/socket.ts";
import { encodeErrorResponse } from "#pool/wire/backend-messages.ts";
import { FrameSplitter, type FrameSink } from "#pool/wire/frame-splitter.ts";
import { Frontend } from "#pool/wire/message-types.ts";
import type { CancelTarget } from "./cancel-registry.ts";
import { type ArrivalOptions, type ArrivalOwner, ClientArrival } from "./client-arrival.ts";
import { type GatewayContext, resolveIdentity } from "./gateway-context.ts";
import { encodeGreeting } from "./login-negotiation.ts";
import type { StartupRequest } from "./startup-request.ts";

/** What a suspended client may still send before it is not read any more. */
const HELD_BYTES_MAX = 65_536;

/** A session is given none: it has seen nothing yet. */
const NO_POSITIONS: readonly Position[] = [];

/** `arriving` ─► `ready` ─► `closed`, and from anywhere to `closed`. */
type Phase = "arriving" | "ready" | "closed";

/** There may be ten thousand idle ones: what one of them does not need is made with the first use. */
export class ClientSession
  implements SocketHandlers, FrameSink, RelayClient, ArrivalOwner, CancelTarget
{
  readonly #context: GatewayContext;
  readonly #channel: ByteChannel;
  readonly #splitter: FrameSplitter;
  #phase: Phase = "arriving";
  /** Undefined once the client is ready. */
  #arrival: ClientArrival | undefined;
  /** A client that pipelines its password does so even where none is asked for. */
  #mayIgnorePassword = false;
  /** Set while it is ready. */
  #identity: RelayIdentity | undefined;
  /** Made with the first message. */
  #relay: Relay | undefined;
  /** What a cancel request names. */
  #processId: number | undefined;
  #countedBytes = 0;
  /** Arrived while input was suspended. */
  #heldBytes = 0;
  /** Something was sent or received since `idleMs` was asked last: each message only sets this, and reads no clock. */
  #wasActive = true;
  #idleSince = 0;

  /** The caller has entered the client into the census; this leaves it. */
  constructor(options: ArrivalOptions) {
    const { context, channel } = options;
    this.#context = context;
    this.#channel = channel;
    this.#splitter = new FrameSplitter(this, context.config.gateway.max_packet_size);
    this.#arrival = new ClientArrival(options, this);
    context.sessions.add(this);
  }

  /** Is being served, or is inside a transaction. */
  get isBusy(): boolean {
    return this.#relay?.isBusy === true;
  }

  /**
   * Clock milliseconds since it was first seen here that the client is not served and nothing more was sent either way. To be asked
   * again and again: it is exact to the time between two calls.
   */
  idleMs(now: number): number {
    if (this.#phase !== "ready" || this.isBusy || this.#wasActive) {
      this.#wasActive = false;
      this.#idleSince = now;
    }
    return now - this.#idleSince;
  }

  /** Says why, then closes. */
  shutdown(sqlState: string, message: string): void {
    if (this.#phase === "closed") return;
    this.#channel.write(encodeErrorResponse({ severity: "FATAL", sqlState, message }));
    this.#leave(false);
  }

  /** A cancel request with this session's key. */
  cancel(): void {
    this.#relay?.cancel();
  }

  // SocketHandlers.

  data(bytes: Uint8Array): void {
    switch (this.#phase) {
      case "arriving":
        this.#arrival?.data(bytes);
        return;
      case "ready":
        this.push(bytes);
        this.#wasActive = true;
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
    if (this.#phase === "arriving") {
      this.#arrival?.frame(type, chunk.subarray(start, end));
    } else if (this.#phase === "ready") {
      if (type === Frontend.PASSWORD && this.#mayIgnorePassword) {
        this.#mayIgnorePassword = false;
        return;
      }
      this.#mayIgnorePassword = false;
      if (type === Frontend.TERMINATE) this.#leave(true);
      else this.#relayed().frame(type, chunk, start, end);
    }
  }

  largeStart(type: number, prefix: Uint8Array): void {
    if (this.#phase === "ready") this.#relayed().largeStart(type, prefix);
    else this.shutdown("08P01", "message is too long before the login is complete");
  }

  largeBytes(bytes: Uint8Array, isLast: boolean): void {
    this.#relay?.largeBytes(bytes, isLast);
  }

  violation(reason: string): void {
    this.shutdown("08P01", reason);
  }

  // RelayClient.

  forward(bytes: Uint8Array): void {
    this.#channel.write(bytes);
    // The end of a long query is no end of a long idleness.
    this.#wasActive = true;
    this.#account();
  }

  get queuedBytes(): number {
    return this.#channel.queuedBytes;
  }

  suspendInput(): void {
    this.#splitter.suspend();
  }

  resumeInput(): void {
    if (this.#phase === "closed") return;
    this.#heldBytes = 0;
    this.#channel.resume();
    this.#splitter.resume();
    this.#relay?.endOfInput();
  }

  abort(error: Uint8Array | undefined): void {
    if (this.#phase === "closed") return;
    if (error === undefined) {
      this.#leave(false);
      this.#channel.destroy();
      return;
    }
    this.#channel.write(error);
    this.#leave(false);
  }

  // ArrivalOwner.

  /**
   * Whoever waits is read on a little: a socket that is not read does not tell that its client has gone, and its place in the queue
   * would stay taken.
   */
  push(bytes: Uint8Array): void {
    this.#splitter.push(bytes);
    if (!this.#splitter.isSuspended) return;
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > HELD_BYTES_MAX) this.#channel.pause();
  }

  async accepted(identity: Identity, parameters: StartupRequest["parameters"]): Promise<void> {
    const context = this.#context;
    const { relay } = resolveIdentity(context, identity, parameters);
    const reported = await context.greetings.get(relay);
    if (this.#phase !== "arriving") return;
    this.#phase = "ready";
    this.#mayIgnorePassword = this.#arrival?.options.bearer !== undefined;
    this.#arrival?.stop();
    this.#arrival = undefined;
    this.#identity = relay;
    context.clients.loggedIn();
    const key = context.cancels.register(this);
    this.#processId = key.processId;
    this.#channel.write(encodeGreeting(reported, key));
  }

  #relayed(): Relay {
    if (this.#identity === undefined) throw new Error("a relay was wanted before the login");
    this.#relay ??= new Relay(this, this.#context.environment, this.#identity, NO_POSITIONS);
    return this.#relay;
  }

  /** Closes the channel behind what was sent. Everything that counts this client forgets it. */
  #leave(isOrderly: boolean): void {
    if (this.#phase === "closed") return;
    const context = this.#context;
    const wasLoggedIn = this.#phase === "ready";
    this.#phase = "closed";
    this.#splitter.suspend();
    this.#arrival?.stop();
    this.#relay?.leave(isOrderly);
    this.#relay = undefined;
    if (this.#processId !== undefined) context.cancels.unregister(this.#processId);
    context.environment.output.usedBytes -= this.#countedBytes;
    this.#countedBytes = 0;
    context.sessions.delete(this);
    if (this.#arrival?.options.isSurplus === true) context.clients.leaveSurplus();
    else context.clients.leave(wasLoggedIn);
    this.#channel.end();
  }

  /** Keeps the total of unread answers over all clients. */
  #account(): void {
    if (this.#phase === "closed") return;
    const { queuedBytes } = this.#channel;
    if (queuedBytes === this.#countedBytes) return;
    this.#context.environment.output.usedBytes += queuedBytes - this.#countedBytes;
    this.#countedBytes = queuedBytes;
  }
}
