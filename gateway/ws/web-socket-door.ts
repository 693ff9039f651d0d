// The WebSocket door: upgrades requests, and starts a client session on each WebSocket, which carries the PostgreSQL protocol as bytes.
import type { Server, ServerWebSocket, WebSocketHandler } from "bun";
import type { Secret } from "#auth/secret.ts";
import type { Timer } from "#pool/time/clock.ts";
import { encodeErrorResponse } from "#pool/wire/backend-messages.ts";
import { readBearer } from "../http/http-login.ts";
import type { ClientLink } from "../session/client-link.ts";
import { ClientSession } from "../session/client-session.ts";
import { CloseCode } from "../session/error-mapping.ts";
import type { GatewayContext } from "../session/gateway-context.ts";
import { BACKPRESSURE_BYTES_MAX, WebSocketChannel } from "./web-socket-channel.ts";

/** What a WebSocket carries from its upgrade to its end. */
export interface WebSocketData {
  readonly link: ClientLink;
  readonly bearer: Secret | undefined;
  channel: WebSocketChannel | undefined;
}

/** Proxies close what is silent for a minute or less. */
const PING_INTERVAL_MS = 25_000;

/** After the sessions have said their last: close handshakes get this long. */
const STOP_GRACE_MS = 1_000;

const TOO_MANY_CLIENTS = encodeErrorResponse({
  severity: "FATAL",
  sqlState: "53300",
  message: "no more connections allowed (max_client_conn)",
});

export class WebSocketDoor {
  readonly #context: GatewayContext;
  readonly #channels = new Set<WebSocketChannel>();
  #pingTimer: Timer | undefined;
  #emptied: (() => void) | undefined;
  readonly handlers: WebSocketHandler<WebSocketData>;

  constructor(context: GatewayContext) {
    this.#context = context;
    this.handlers = {
      // Silence is normal; a dead peer is found by our pings.
      idleTimeout: 0,
      maxPayloadLength: context.config.http.max_ws_message,
      backpressureLimit: BACKPRESSURE_BYTES_MAX,
      sendPings: false,
      perMessageDeflate: false,
      open: (ws) => this.#open(ws),
      message: (ws, message) => receive(ws, message),
      drain: (ws) => ws.data.channel?.drained(),
      pong: (ws) => ws.data.channel?.ponged(),
      close: (ws, code) => this.#close(ws, code),
    };
  }

  /**
   * The query string's `address`, with which the driver names a database server, is ignored: the startup packet names the database, and
   * an address from outside is never dialled. Any origin may connect, for nothing is sent along that a page does not know itself.
   */
  upgrade(
    request: Request,
    server: Server<WebSocketData> | null,
    link: ClientLink,
  ): Response | undefined {
    const { headers } = request;
    // Without a choice of ours Bun would agree to the first one that is offered.
    if (headers.has("sec-websocket-protocol")) {
      return new Response("No WebSocket subprotocol is spoken here.\n", { status: 400 });
    }
    const bearer = readBearer(headers);
    if (!bearer.ok) return new Response(`${bearer.error.message}\n`, { status: 401 });
    const data: WebSocketData = { link, bearer: bearer.token, channel: undefined };
    const isUpgrade = headers.get("upgrade")?.toLowerCase() === "websocket";
    if (isUpgrade && server?.upgrade(request, { data }) === true) return undefined;
    return new Response(
      "This address speaks the PostgreSQL protocol over WebSocket: connect with a WebSocket client.\n",
      { status: 426, headers: { Upgrade: "websocket", Connection: "Upgrade" } },
    );
  }

  start(): void {
    const { clock } = this.#context.environment;
    const ping = (): void => {
      for (const channel of this.#channels) channel.ping();
      this.#pingTimer = clock.schedule(PING_INTERVAL_MS, ping);
    };
    this.#pingTimer = clock.schedule(PING_INTERVAL_MS, ping);
  }

  /** The sessions have ended: lets the last close handshakes end. */
  async stop(): Promise<void> {
    this.#pingTimer?.cancel();
    if (this.#channels.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
      this.#context.environment.clock.schedule(STOP_GRACE_MS, resolve);
    });
  }

  #open(ws: ServerWebSocket<WebSocketData>): void {
    const { clients, environment } = this.#context;
    const { link, bearer } = ws.data;
    const channel = new WebSocketChannel(ws, environment.clock);
    ws.data.channel = channel;
    this.#channels.add(channel);
    if (!clients.enter()) {
      channel.write(TOO_MANY_CLIENTS);
      channel.end();
      return;
    }
    channel.setHandlers(
      new ClientSession({
        context: this.#context,
        channel,
        door: "websocket",
        isSecure: link.isSecure,
        remoteAddress: link.address,
        bearer,
      }),
    );
  }

  #close(ws: ServerWebSocket<WebSocketData>, code: number): void {
    const { channel } = ws.data;
    if (channel === undefined) return;
    this.#channels.delete(channel);
    channel.closed(code);
    if (this.#channels.size === 0) this.#emptied?.();
  }
}

function receive(ws: ServerWebSocket<WebSocketData>, message: string | Buffer): void {
  const { channel } = ws.data;
  if (typeof message === "string") {
    channel?.refuse(CloseCode.UNSUPPORTED_DATA, "the PostgreSQL protocol is binary");
  } else {
    channel?.received(message);
  }
}
