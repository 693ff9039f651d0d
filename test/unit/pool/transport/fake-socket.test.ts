import { expect, test } from "bun:test";
import fc from "fast-check";
import type { ByteSocket } from "#pool/transport/socket.ts";
import { FakeSocket, tearBySizes } from "#test/support/fake-socket.ts";

interface Events {
  readonly chunks: number[][];
  drains: number;
  readonly closes: (string | undefined)[];
}

function record(socket: ByteSocket): Events {
  const events: Events = { chunks: [], drains: 0, closes: [] };
  socket.setHandlers({
    data: (bytes) => events.chunks.push([...bytes]),
    drain: () => void (events.drains += 1),
    close: (error) => events.closes.push(error?.message),
  });
  return events;
}

const settle = (): Promise<void> => Bun.sleep(0);

test("bytes arrive torn as asked, whole in sum, and the end behind them", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 20 }), { maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 4 }),
      async (writes, sizes) => {
        const [left, right] = FakeSocket.pair({ tear: tearBySizes(sizes) });
        for (const bytes of writes) left.write(bytes);
        left.end();
        const events = record(right);
        await settle();

        expect(events.chunks.flat()).toEqual(writes.flatMap((bytes) => [...bytes]));
        expect(events.closes).toEqual([undefined]);
        expect(Math.max(1, ...events.chunks.map((chunk) => chunk.length))).toBeLessThanOrEqual(
          Math.max(...sizes),
        );
      },
    ),
    { numRuns: 50 },
  );
});

test("a paused reader gets nothing, not even the end, and all of it after it resumes", async () => {
  const [left, right] = FakeSocket.pair();
  const events = record(right);
  right.pause();
  left.write(Uint8Array.of(1, 2));
  left.end();
  await settle();
  expect(events).toEqual({ chunks: [], drains: 0, closes: [] });

  right.resume();
  await settle();
  expect(events).toEqual({ chunks: [[1, 2]], drains: 0, closes: [undefined] });
});

test("a reader that does not read fills the writer's queue, and one drain tells that it is empty", async () => {
  const [left, right] = FakeSocket.pair({ windowBytes: 2, tear: tearBySizes([1]) });
  const events = record(left);
  left.write(Uint8Array.of(1, 2, 3, 4));
  expect(left.queuedBytes).toBe(2);

  record(right);
  await settle();
  expect([left.queuedBytes, events.drains]).toEqual([0, 1]);
});

test("a broken link loses what was on the way and tells both ends why", async () => {
  const [left, right] = FakeSocket.pair();
  const [leftEvents, rightEvents] = [record(left), record(right)];
  left.write(Uint8Array.of(1));
  left.break(new Error("reset"));
  await settle();

  expect(leftEvents).toEqual({ chunks: [], drains: 0, closes: ["reset"] });
  expect(rightEvents).toEqual({ chunks: [], drains: 0, closes: ["reset"] });
});

test("a socket that closed before anybody listened tells whoever listens first, once", async () => {
  const [left] = FakeSocket.pair();
  left.destroy();
  await settle();
  const events = record(left);
  await settle();
  const again = record(left);
  await settle();

  expect([events.closes, again.closes]).toEqual([[undefined], []]);
});
