// The wire door: accepts sockets, counts them, takes them to TLS when asked, and starts a client session on each.
import type { BunTransport, CertificateAndKey } from "#pool/transport/bun-transport.ts";
import type { ByteSocket, HostAddress } from "#pool/transport/socket.ts";
import { encodeErrorResponse } from "#pool/wire/backend-messages.ts";
import { TOO_MANY_CLIENTS } from "../session/client-arrival.ts";
import { ClientSession } from "../session/client-session.ts";
import type { GatewayContext } from "../session/gateway-context.ts";
import { isLoopback } from "../session/client-link.ts";

/** "S": the server goes on in TLS ("SSL Session Encryption"). */
const TLS_OFFERED = new Uint8Array([0x53]);

const REFUSAL = encodeErrorResponse({
  severity: "FATAL",
  sqlState: "53300",
  message: TOO_MANY_CLIENTS,
});

export interface WireDoor {
  readonly address: HostAddress;
  /** Stops accepting; sessions go on. */
  stop(): void;
}

export function openWireDoor(
  context: GatewayContext,
  transport: BunTransport,
  address: HostAddress,
): WireDoor {
  const { tls } = context.config.gateway;
  const certificate =
    tls === undefined ? undefined : { cert: tls.certificate, key: tls.private_key.reveal() };
  return transport.listen({ address }, (socket) => {
    const isSurplus = !context.clients.enter();
    if (!isSurplus || context.clients.enterSurplus()) {
      openSession(context, transport, { socket, certificate, isSurplus });
    } else {
      socket.write(REFUSAL);
      socket.end();
    }
  });
}

interface Arrival {
  readonly socket: ByteSocket;
  readonly certificate: CertificateAndKey | undefined;
  readonly isSurplus: boolean;
}

function openSession(context: GatewayContext, transport: BunTransport, arrival: Arrival): void {
  const { socket, certificate, isSurplus } = arrival;
  const { clock } = context.environment;
  const loginTimeoutMs = context.config.gateway.client_login_timeout * 1_000;
  const startTls =
    certificate === undefined
      ? undefined
      : async (): Promise<void> => {
          socket.pause();
          socket.write(TLS_OFFERED);
          await transport.upgradeServer(socket, certificate, clock.now() + loginTimeoutMs);
          socket.setHandlers(session);
          socket.resume();
        };
  const session = new ClientSession({
    context,
    channel: socket,
    door: "postgres",
    get isSecure() {
      return socket.isSecure || isLoopback(socket.remoteAddress);
    },
    remoteAddress: socket.remoteAddress,
    bearer: undefined,
    isSurplus,
    ...(startTls === undefined ? {} : { startTls }),
  });
  socket.setHandlers(session);
}
