// Opens the HTTP and WebSocket door and closes it in order.
import http from "node:http";
import type { Server } from "bun";
import type { HostAddress } from "#pool/transport/socket.ts";
import type { GatewayContext } from "../session/gateway-context.ts";
import { closeSessions } from "../session/session-sweep.ts";
import { type WebSocketData, WebSocketDoor } from "../ws/web-socket-door.ts";
import { httpApp } from "./http-app.ts";
import { Traffic } from "./traffic.ts";

export interface HttpListener {
  readonly address: HostAddress;
  /** Refuses new requests, lets those in flight and WebSocket sessions end until the deadline (clock milliseconds), then closes all. */
  stop(deadline: number): Promise<void>;
}

/**
 * Bun cuts a longer body with an empty 413 before a handler sees it. Up to this multiple of max_request_body we answer ourselves, with
 * an error that can be read.
 */
const BODY_MARGIN = 2;

/** Throws when the address can't be had. */
export function listenHttp(context: GatewayContext, address: HostAddress): HttpListener {
  const { config, environment } = context;
  const { tls } = config.gateway;
  const traffic = new Traffic();
  const webSockets = new WebSocketDoor(context);
  // Read by Bun when a server is made; there is no other way to set it.
  Object.assign(http, { maxHeaderSize: config.http.max_header_size });
  const serverOf = (): Server<WebSocketData> | null => app.server;
  const app = httpApp(context, traffic, webSockets, serverOf).listen({
    hostname: address.host,
    port: address.port,
    // Two processes on one port would go unnoticed.
    reusePort: false,
    // A query may be silent for longer than any value; waits have deadlines of their own.
    idleTimeout: 0,
    development: false,
    maxRequestBodySize: config.http.max_request_body * BODY_MARGIN,
    websocket: webSockets.handlers,
    ...(tls === undefined ? {} : { tls: { cert: tls.certificate, key: tls.private_key.reveal() } }),
  });
  const { server } = app;
  if (server === null) throw new Error("the HTTP server did not start");
  webSockets.start();
  return {
    address: { host: address.host, port: server.port ?? address.port },
    stop: async (deadline) => {
      const { clock } = environment;
      // Only the listening socket closes now; its promise waits for idle keep-alive connections, so nobody waits for it.
      void server.stop(false);
      await Promise.all([traffic.drain(clock, deadline), closeSessions(context, deadline)]);
      await webSockets.stop();
      await server.stop(true);
    },
  };
}
