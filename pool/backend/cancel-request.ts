// Cancels what a server is running, over a connection of its own: PostgreSQL protocol, "Canceling Requests in Progress".
import { PoolError } from "../errors.ts";
import { writeInt32 } from "../wire/message-types.ts";
import type { CancelKey } from "./login-messages.ts";
import { openServerSocket } from "./server-tls.ts";
import type { ServerSocketOptions } from "./server-tls.ts";

const CANCEL_REQUEST = 80_877_102;

export interface CancelRequestOptions extends ServerSocketOptions, CancelKey {}

/**
 * Resolves when the server has closed the connection, which it does once the signal is sent: a statement that starts on the
 * cancelled connection after that is not hit. Says nothing about whether anything was cancelled: the server does not tell.
 *
 * @throws PoolError as openServerSocket; ERR_CONNECT_TIMEOUT 08001 when the server has not closed by the deadline.
 */
export async function sendCancelRequest(options: CancelRequestOptions): Promise<void> {
  const { clock, deadline, processId, secretKey } = options;
  const socket = await openServerSocket(options);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = clock.schedule(deadline - clock.now(), () => {
    const message = "the server did not confirm the cancel request in time";
    reject(new PoolError("ERR_CONNECT_TIMEOUT", message, { sqlState: "08001" }));
    socket.destroy();
  });
  // A reset closes the connection as well as an end does: there is no signal to come in either case.
  socket.setHandlers({ data: () => {}, drain: () => {}, close: () => resolve() });
  socket.write(encodeCancelRequest(processId, secretKey));
  socket.resume();
  try {
    await promise;
  } finally {
    timer.cancel();
  }
}

function encodeCancelRequest(processId: number, secretKey: Uint8Array): Uint8Array {
  const packet = new Uint8Array(12 + secretKey.length);
  writeInt32(packet, 0, packet.length);
  writeInt32(packet, 4, CANCEL_REQUEST);
  writeInt32(packet, 8, processId);
  packet.set(secretKey, 12);
  return packet;
}
