// Laws: whatever the cuts of a server's bytes and however slowly the client takes its answers, it gets the same bytes, and no large chunk is kept.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { BackendConnection } from "#pool/backend/backend-connection.ts";
import { Expect, Fate } from "#pool/exchange/reply-plan.ts";
import { RELEASE_BYTES_MIN } from "#pool/transport/release-bytes.ts";
import { SendQueue } from "#pool/transport/send-queue.ts";
import type { ByteSocket, SocketHandlers } from "#pool/transport/socket.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { FakeCluster, PROFILE } from "#test/unit/pool/session/relay-bench.ts";
import { server } from "#test/support/wire-frames.ts";

/** A server's end that says only what it is given. */
class Mouth implements ByteSocket {
  readonly remoteAddress = "127.0.0.1";
  readonly isSecure = false;
  readonly queuedBytes = 0;
  handlers: SocketHandlers | undefined;

  setHandlers(handlers: SocketHandlers): void {
    this.handlers = handlers;
  }
  write(): void {}
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

/** Takes as many bytes at a time as it is told to. */
class SlowClient {
  readonly received: Uint8Array[] = [];
  readonly #queue = new SendQueue();
  readonly #rooms: readonly number[];
  #turn = 0;

  constructor(rooms: readonly number[]) {
    this.#rooms = rooms;
  }

  forward(bytes: Uint8Array): void {
    this.#queue.add(bytes, 0);
  }

  take(room = this.#rooms[this.#turn++ % this.#rooms.length] ?? 1): void {
    let left = room;
    this.#queue.flush({
      write: (bytes) => {
        const part = bytes.slice(0, left);
        this.received.push(part);
        left -= part.length;
        return part.length;
      },
    });
  }
}

const valueSize = fc.oneof(
  fc.integer({ min: 0, max: 30 }),
  fc.integer({ min: RELEASE_BYTES_MIN - 40, max: 2 * RELEASE_BYTES_MIN }),
);
const result = fc
  .record({ sizes: fc.array(valueSize, { maxLength: 8 }), error: fc.boolean() })
  .map(({ sizes, error }) =>
    concatBytes([
      server.rowDescription("a"),
      ...sizes.map((size, index) => server.dataRow(String.fromCharCode(97 + index).repeat(size))),
      error
        ? server.error("22012", "e".repeat(2 * RELEASE_BYTES_MIN))
        : server.commandComplete("S"),
      server.ready("I"),
    ]),
  );
const cutSizes = fc.array(
  fc.oneof(
    fc.integer({ min: 1, max: 20 }),
    fc.integer({ min: RELEASE_BYTES_MIN - 1, max: 3 * RELEASE_BYTES_MIN }),
  ),
  { minLength: 1, maxLength: 6 },
);
const rooms = fc.array(fc.integer({ min: 0, max: 3 * RELEASE_BYTES_MIN }), {
  minLength: 1,
  maxLength: 6,
});

test("a slow client gets every byte of large answers, and each large chunk is given up once it was read", () => {
  fc.assert(
    fc.property(fc.array(result, { maxLength: 4 }), cutSizes, rooms, (results, sizes, takes) => {
      const socket = new Mouth();
      const connection = new BackendConnection({
        socket,
        clock: new FakeClock(),
        server: new FakeCluster().primary,
        profile: PROFILE,
        principal: "one",
        startupOptions: "",
        processId: 1,
        secretKey: new Uint8Array(4),
        parameters: new Map(),
        sendCancel: () => Promise.resolve(),
      });
      const client = new SlowClient(takes);
      connection.attach({
        forward: (bytes) => client.forward(bytes),
        settled: () => {},
        lost: (error) => {
          throw error;
        },
        writable: () => {},
      });
      for (const _ of results) connection.plan.expect(Expect.QUERY, Fate.FORWARD);
      const reply = concatBytes(results);
      const kept: number[] = [];
      for (let at = 0, turn = 0; at < reply.length; turn++) {
        const chunk = reply.slice(at, at + (sizes[turn % sizes.length] ?? 1));
        const { length } = chunk;
        at += length;
        socket.handlers?.data(chunk);
        if (length >= RELEASE_BYTES_MIN && chunk.length > 0) kept.push(length);
        client.take();
      }
      client.take(reply.length);

      expect(Buffer.compare(concatBytes(client.received), reply)).toBe(0);
      expect(kept).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
