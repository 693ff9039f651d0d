// Laws: whatever a socket takes at a time, it gets every byte once and in order, and the writer may do with its arrays as it likes.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { RELEASE_BYTES_MIN, releaseBytes } from "#pool/transport/release-bytes.ts";
import { SendQueue } from "#pool/transport/send-queue.ts";
import { concatBytes } from "#pool/wire/message-types.ts";

const size = fc.oneof(
  fc.integer({ min: 1, max: 50 }),
  fc.integer({ min: RELEASE_BYTES_MIN - 2, max: RELEASE_BYTES_MIN + 2 }),
);
/** A write, of which the socket took some before it was queued, or a turn in which the socket takes so many bytes; -1 as a closed one does. */
const step = fc.oneof(
  fc.record({ size, taken: fc.integer({ min: 0, max: 40 }) }),
  fc.record({ room: fc.integer({ min: -1, max: 2 * RELEASE_BYTES_MIN }) }),
);

test("a queue gives out what was put in, however the socket takes it", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const queue = new SendQueue();
      const written: Uint8Array[] = [];
      const received: Uint8Array[] = [];
      let seed = 0;
      const flush = (room: number): void => {
        let left = room;
        const isEmpty = queue.flush({
          write: (bytes) => {
            if (left < 0) return left;
            const part = bytes.slice(0, left);
            received.push(part);
            left -= part.length;
            return part.length;
          },
        });
        expect(isEmpty).toBe(queue.bytes === 0);
      };
      for (const one of steps) {
        if ("room" in one) {
          flush(one.room);
          continue;
        }
        const bytes = Uint8Array.from({ length: one.size }, () => seed++ & 0xff);
        const start = Math.min(one.taken, bytes.length - 1);
        written.push(bytes.slice(start));
        queue.add(bytes, start);
        bytes.fill(0xff);
        releaseBytes(bytes);
      }
      const missing = concatBytes(written).length - concatBytes(received).length;
      expect(queue.bytes).toBe(missing);
      flush(missing);
      expect(Buffer.compare(concatBytes(received), concatBytes(written))).toBe(0);
    }),
  );
});
