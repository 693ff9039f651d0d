import { describe, expect, test } from "bun:test";
import {
  MESSAGE_BYTES_MAX,
  type NativeWebSocket,
  WebSocketChannel,
} from "#gateway/ws/web-socket-channel.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

/** Bun's side: takes what it is told to take, and remembers what it was asked. */
class FakeNative implements NativeWebSocket {
  readonly calls: string[] = [];
  readonly sent: Uint8Array[] = [];
  buffered = 0;
  /** What sendBinary answers next; otherwise the size. */
  readonly answers: number[] = [];

  sendBinary(bytes: Uint8Array): number {
    this.sent.push(bytes.slice());
    return this.answers.shift() ?? bytes.length;
  }
  getBufferedAmount(): number {
    return this.buffered;
  }
  close(code?: number): void {
    this.calls.push(`close ${code}`);
  }
  terminate(): void {
    this.calls.push("terminate");
  }
  ping(): number {
    this.calls.push("ping");
    return 0;
  }
  pause(): void {
    this.calls.push("pause");
  }
  resume(): void {
    this.calls.push("resume");
  }
}

function open() {
  const native = new FakeNative();
  const clock = new FakeClock();
  const channel = new WebSocketChannel(native, clock);
  const events: string[] = [];
  channel.setHandlers({
    data: (bytes) => events.push(`data ${[...bytes].join(",")}`),
    drain: () => events.push("drain"),
    close: (error) => events.push(error === undefined ? "close" : `close ${error.message}`),
  });
  return { native, clock, channel, events };
}

const bytes = (...values: number[]) => new Uint8Array(values);

describe("writing", () => {
  test("what is written in one turn leaves in one message", async () => {
    const { native, channel, events } = open();

    channel.write(bytes(1));
    channel.write(bytes(2, 3));
    expect({ sent: native.sent, queued: channel.queuedBytes }).toEqual({ sent: [], queued: 3 });
    await Promise.resolve();
    channel.write(bytes(4));
    await Promise.resolve();

    expect(native.sent).toEqual([bytes(1, 2, 3), bytes(4)]);
    // Bytes were queued until the end of the turn, so whoever waits for an empty queue is told.
    expect(events).toEqual(["drain", "drain"]);
    expect(channel.queuedBytes).toBe(0);
  });

  test("a message is never longer than its limit, and no byte is lost or moved", async () => {
    const { native, channel } = open();
    const long = new Uint8Array(MESSAGE_BYTES_MAX + 2).map((_, index) => index % 251);

    channel.write(bytes(7));
    channel.write(long);
    channel.write(bytes(8));
    await Promise.resolve();

    expect(native.sent.map(({ length }) => length)).toEqual([MESSAGE_BYTES_MAX, 3, 1]);
    expect(Buffer.concat(native.sent).equals(Buffer.concat([bytes(7), long, bytes(8)]))).toBe(true);
  });

  test("so large a piece that it is not copied leaves at once, behind what was written before it", async () => {
    const { native, channel, events } = open();
    const [below, large] = [new Uint8Array(16_383).fill(1), new Uint8Array(16_384).fill(2)];

    channel.write(below);
    expect(native.sent).toEqual([]);
    channel.write(large);
    const whole = new Uint8Array(32_767).fill(1, 0, 16_383).fill(2, 16_383);
    expect({ sent: native.sent, queued: channel.queuedBytes }).toEqual({
      sent: [whole],
      queued: 0,
    });
    channel.write(large);
    expect({ sent: native.sent, events }).toEqual({ sent: [whole, large], events: [] });
    await Promise.resolve();

    // For the piece that did wait.
    expect(events).toEqual(["drain"]);
  });

  test("behind a queued message nothing is sent until that queue is empty", async () => {
    const { native, channel, events } = open();
    native.answers.push(-1);
    channel.write(bytes(1));
    await Promise.resolve();
    native.buffered = 1;

    channel.write(bytes(2));
    await Promise.resolve();
    channel.drained();
    expect(native.sent).toEqual([bytes(1)]);
    expect({ queued: channel.queuedBytes, events }).toEqual({ queued: 2, events: [] });

    native.buffered = 0;
    channel.drained();
    expect(native.sent).toEqual([bytes(1), bytes(2)]);
    expect(events).toEqual(["drain"]);
    channel.drained();
    expect(events).toEqual(["drain"]);
  });

  test("a dropped message ends the WebSocket", async () => {
    const { native, channel, events } = open();
    native.answers.push(0);

    channel.write(bytes(1));
    await Promise.resolve();
    channel.write(bytes(2));
    await Promise.resolve();
    channel.closed(1006);

    expect(native.sent).toEqual([bytes(1)]);
    expect(native.calls).toEqual(["terminate"]);
    expect(events).toEqual(["close the WebSocket was closed with 1006"]);
  });

  test("a dropped message never ends the WebSocket inside the call that wrote it", async () => {
    const { native, channel } = open();
    native.answers.push(0);

    channel.write(new Uint8Array(16_384));
    expect(native.calls).toEqual([]);
    await Promise.resolve();

    expect(native.calls).toEqual(["terminate"]);
  });
});

describe("reading", () => {
  test("stops while paused, and what had come goes on in order", () => {
    const { native, channel, events } = open();

    channel.received(bytes(1));
    channel.pause();
    channel.pause();
    channel.received(bytes(2));
    channel.received(bytes(3));
    expect(events).toEqual(["data 1"]);
    channel.resume();
    channel.resume();

    expect(events).toEqual(["data 1", "data 2", "data 3"]);
    expect(native.calls).toEqual(["pause", "resume"]);
  });

  test("a pause from inside a delivery keeps the rest", () => {
    const { native, channel, events } = open();
    channel.pause();
    channel.received(bytes(1));
    channel.received(bytes(2));
    channel.setHandlers({
      data: (data) => {
        events.push(`data ${[...data].join(",")}`);
        channel.pause();
      },
      drain: () => {},
      close: () => {},
    });

    channel.resume();
    expect(events).toEqual(["data 1"]);
    channel.resume();

    expect(events).toEqual(["data 1", "data 2"]);
    expect(native.calls).toEqual(["pause", "pause", "pause"]);
  });
});

describe("the end", () => {
  test("comes behind what was written, with 1000", async () => {
    const { native, clock, channel, events } = open();
    native.answers.push(-1);
    channel.write(bytes(1));
    channel.end();
    channel.write(bytes(9));
    channel.received(bytes(9));
    await Promise.resolve();
    expect({ sent: native.sent, calls: native.calls }).toEqual({ sent: [bytes(1)], calls: [] });

    channel.drained();
    expect(native.calls).toEqual(["close 1000"]);
    channel.closed(1000);

    expect(events).toEqual(["close"]);
    expect(clock.timerCount).toBe(0);
  });

  test("of a peer that takes nothing comes all the same", () => {
    const { native, clock, channel } = open();
    native.answers.push(-1);
    channel.write(bytes(1));
    channel.pause();

    channel.end();
    clock.advance(4_999);
    expect(native.calls).toEqual(["pause", "resume"]);
    clock.advance(1);

    expect(native.calls).toEqual(["pause", "resume", "terminate"]);
  });

  test("by destroy is told once, and queued bytes are gone", () => {
    const { native, channel, events } = open();
    channel.write(bytes(1));

    channel.destroy();
    channel.destroy();
    channel.closed(1006);

    expect({ calls: native.calls, sent: native.sent, queued: channel.queuedBytes }).toEqual({
      calls: ["terminate"],
      sent: [],
      queued: 0,
    });
    expect(events).toHaveLength(1);
  });

  test("for the peer's fault has the code that names it, and nothing is read after it", () => {
    const { native, channel, events } = open();

    channel.refuse(1003, "binary only");
    channel.received(bytes(1));

    expect({ calls: native.calls, events }).toEqual({ calls: ["close 1003"], events: [] });
  });
});

describe("a ping", () => {
  test("that is not answered before the next one ends the WebSocket", () => {
    const { native, channel } = open();

    channel.ping();
    channel.ponged();
    channel.ping();
    channel.received(bytes(1));
    channel.ping();
    expect(native.calls).toEqual(["ping", "ping", "ping"]);
    channel.ping();

    expect(native.calls.at(-1)).toBe("terminate");
  });

  test("is not held against a peer whose pong we would not read", () => {
    const { native, channel } = open();

    channel.ping();
    channel.pause();
    channel.ping();
    channel.resume();
    channel.ping();

    expect(native.calls).toEqual(["ping", "pause", "resume", "ping"]);
  });
});
