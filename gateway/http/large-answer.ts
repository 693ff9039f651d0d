// Sends a large answer no faster than its client reads it, and keeps it counted until the last of it has left.
import type { RelayEnvironment } from "#pool/session/relay-environment.ts";
import type { Timer } from "#pool/time/clock.ts";
import type { JsonBytes } from "../session/json-bytes.ts";

/** A smaller body goes out whole: what its client leaves unread is less than a socket buffers. */
export const WHOLE_BODY_MAX = 65_536;

/**
 * A stream over `body`, which counts against `max_client_buffer` until it has been read. `ended` is called once: when the last piece
 * has been taken, when the client goes, or when it has taken nothing for `client_read_timeout`, which resets the connection.
 */
export function largeAnswer(
  body: JsonBytes,
  environment: RelayEnvironment,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const { clock, output, clientReadTimeoutMs, counters } = environment;
  const { size } = body;
  const chunks = body.chunks();
  let next = 0;
  let timer: Timer | undefined;
  let isOpen = true;
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    timer?.cancel();
    output.usedBytes -= size;
    ended();
  };
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    const taken = next;
    timer = clock.schedule(clientReadTimeoutMs, () => {
      if (next > taken) {
        watch(controller);
        return;
      }
      counters.slowReadersClosed++;
      controller.error(new Error("the client takes nothing"));
      end();
    });
  };
  output.usedBytes += size;
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      pull: (controller) => {
        const chunk = chunks[next++];
        if (chunk !== undefined) controller.enqueue(chunk);
        if (next < chunks.length) return;
        controller.close();
        end();
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}
