// Sends a large answer no faster than its client reads it, and keeps it counted until the last of it has left.
import type { RelayEnvironment } from "#pool/session/relay-environment.ts";
import type { Timer } from "#pool/time/clock.ts";

/** A smaller body goes out whole: what its client leaves unread is less than a socket buffers. */
export const WHOLE_BODY_MAX = 65_536;
const PIECE_BYTES = 65_536;

/**
 * A stream over `body`, which counts against `max_client_buffer` until it has been read. `ended` is called once: when the last piece
 * has been taken, when the client goes, or when it has taken nothing for `client_read_timeout`, which resets the connection.
 */
export function largeAnswer(
  body: Uint8Array,
  environment: RelayEnvironment,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const { clock, output, clientReadTimeoutMs, counters } = environment;
  let offset = 0;
  let timer: Timer | undefined;
  let isOpen = true;
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    timer?.cancel();
    output.usedBytes -= body.length;
    ended();
  };
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    const taken = offset;
    timer = clock.schedule(clientReadTimeoutMs, () => {
      if (offset > taken) {
        watch(controller);
        return;
      }
      counters.slowReadersClosed++;
      controller.error(new Error("the client takes nothing"));
      end();
    });
  };
  output.usedBytes += body.length;
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      pull: (controller) => {
        const piece = body.subarray(offset, offset + PIECE_BYTES);
        offset += piece.length;
        controller.enqueue(piece);
        if (offset < body.length) return;
        controller.close();
        end();
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}
