// Laws: whatever is written when and whenever Bun's queue is full, the peer gets the same bytes in order, and a written array is the writer's again.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { type NativeWebSocket, WebSocketChannel } from "#gateway/ws/web-socket-channel.ts";
import { releaseBytes } from "#pool/transport/release-bytes.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

class Peer implements NativeWebSocket {
  readonly received: Uint8Array[] = [];
  isFull = false;
  #buffered = 0;

  sendBinary(bytes: Uint8Array): number {
    if (this.#buffered > 0) throw new Error("a message was added to a queue that is not empty");
    this.received.push(bytes.slice());
    if (!this.isFull) return bytes.length;
    this.#buffered = bytes.length;
    return -1;
  }
  getBufferedAmount(): number {
    return this.#buffered;
  }
  taken(): void {
    this.#buffered = 0;
  }
  close(): void {}
  terminate(): void {}
  ping(): number {
    return 0;
  }
  pause(): void {}
  resume(): void {}
}

/** Around what leaves at once, and what one message may have. */
const size = fc.oneof(
  fc.integer({ min: 1, max: 50 }),
  fc.integer({ min: 16_382, max: 16_386 }),
  fc.integer({ min: 1_048_574, max: 1_048_578 }),
);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("write" as const), size }) },
  fc.record({ kind: fc.constantFrom("turn", "full", "drained") }),
);

test("the peer gets what was written, whenever its queue is full", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const peer = new Peer();
      const channel = new WebSocketChannel(peer, new FakeClock());
      channel.setHandlers({ data: () => {}, drain: () => {}, close: () => {} });
      const written: Uint8Array[] = [];
      const drain = (): void => {
        peer.isFull = false;
        peer.taken();
        channel.drained();
      };
      for (const one of steps) {
        if ("size" in one) {
          const bytes = new Uint8Array(one.size).fill(written.length + 1);
          written.push(bytes.slice());
          channel.write(bytes);
          bytes.fill(0xff);
          releaseBytes(bytes);
        } else if (one.kind === "turn") await Promise.resolve();
        else if (one.kind === "full") peer.isFull = true;
        else drain();
      }
      await Promise.resolve();
      drain();

      expect(channel.queuedBytes).toBe(0);
      expect(Buffer.compare(concatBytes(peer.received), concatBytes(written))).toBe(0);
    }),
    { numRuns: 200 },
  );
});
