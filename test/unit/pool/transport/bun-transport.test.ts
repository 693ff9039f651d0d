// Real sockets on the loopback interface: what is tested here is what Bun's sockets do.
import { afterAll, expect, test } from "bun:test";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { connect as connectNode } from "node:net";
import { BunTransport } from "#pool/transport/bun-transport.ts";
import type { Listener } from "#pool/transport/bun-transport.ts";
import type { ByteSocket } from "#pool/transport/socket.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { Recorder, rejection } from "./recorder.ts";

const clock = new SystemClock();
const transport = new BunTransport(clock);
const soon = (): number => clock.now() + 5000;
const LOOPBACK = { host: "127.0.0.1", port: 0 };
const cleanups: (() => void)[] = [];
afterAll(() => cleanups.forEach((cleanup) => cleanup()));

/** A listener and the sockets it accepts, in order. */
function listen(): { listener: Listener; next: () => Promise<ByteSocket> } {
  const accepted: ByteSocket[] = [];
  let wake = (): void => {};
  const listener = transport.listen({ address: LOOPBACK }, (socket) => {
    accepted.push(socket);
    wake();
  });
  cleanups.push(() => listener.stop());
  return {
    listener,
    next: async () => {
      while (accepted.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const socket = accepted.shift();
      if (socket === undefined) throw new Error("nothing was accepted");
      return socket;
    },
  };
}

async function pair(): Promise<[client: ByteSocket, server: ByteSocket]> {
  const { listener, next } = listen();
  const [client, server] = await Promise.all([transport.connect(listener.address, soon()), next()]);
  cleanups.push(() => client.destroy());
  return [client, server];
}

/** A peer that is not ours: it can reset, and close half of a connection. */
async function foreignPair(): Promise<[foreign: Socket, server: ByteSocket]> {
  const { listener, next } = listen();
  const foreign = connectNode({ ...listener.address, allowHalfOpen: true });
  foreign.on("error", () => {});
  cleanups.push(() => foreign.destroy());
  return [foreign, await next()];
}

/** For what must not happen: long enough on the loopback interface; too short only hides a fault, never invents one. */
const settle = (): Promise<void> => Bun.sleep(30);

test("bytes travel in both directions, and an orderly end is told once on both sides", async () => {
  const [client, server] = await pair();
  const [left, right] = [Recorder.on(client), Recorder.on(server)];
  client.write(Buffer.from("ping"));
  await right.until(() => right.text === "ping");
  server.write(Buffer.from("pong"));
  server.end();
  await Promise.all([left.closed, right.closed]);
  client.write(Buffer.from("late"));
  client.end();
  client.destroy();
  await settle();

  expect([left.text, left.closes, right.closes]).toEqual(["pong", ["orderly"], ["orderly"]]);
  expect([client.remoteAddress, client.isSecure]).toEqual(["127.0.0.1", false]);
});

test("what arrives before handlers are set, and the end behind it, waits for them", async () => {
  const [client, server] = await pair();
  client.write(Buffer.from("early"));
  client.end();
  await settle();
  const right = Recorder.on(server);
  await right.closed;

  expect([right.text, right.closes]).toEqual(["early", ["orderly"]]);
});

test("handlers can be swapped and reading paused at any time without losing a byte", async () => {
  const [client, server] = await pair();
  const total = 3_000_000;
  const first = new Recorder();
  const second = new Recorder();
  server.setHandlers({
    data: (bytes) => {
      first.data(bytes);
      server.pause();
      queueMicrotask(() => {
        server.setHandlers(second);
        server.resume();
      });
    },
    drain: () => {},
    close: () => first.close(new Error("wrong handlers")),
  });
  client.write(new Uint8Array(total));
  Recorder.on(client);
  await second.until(() => first.size + second.size === total);

  expect([first.size > 0, second.size > 0, first.closes]).toEqual([true, true, []]);
});

test("bytes and the reset behind them, both met while paused, are told in order after resume", async () => {
  const [foreign, server] = await foreignPair();
  const right = Recorder.on(server);
  server.pause();
  foreign.write("last words");
  await settle();
  foreign.resetAndDestroy();
  await settle();
  expect([right.text, right.closes]).toEqual(["", []]);

  server.resume();
  await right.closed;
  expect([right.text, right.closes.length]).toEqual(["last words", 1]);
  expect(right.closes[0]).toContain("ECONNRESET");
});

test("who ends a socket that broke while paused is told, without what was not read", async () => {
  const [foreign, server] = await foreignPair();
  const right = Recorder.on(server);
  server.pause();
  foreign.write("last words");
  await settle();
  foreign.resetAndDestroy();
  await settle();
  server.end();
  await right.closed;

  expect([right.text, right.closes.length]).toEqual(["", 1]);
});

test.each([
  ["sent at once", 1],
  ["gathered", 40],
])(
  "with small writes %s, a slow reader fills a queue of exact size, which drains once and completely",
  async (_, before) => {
    // So many writes in one turn make small ones of the next turns wait for the end of theirs, and 16 turns undo that.
    const [other] = await pair();
    for (let turn = 0; turn < 20; turn++) {
      for (let i = 0; i < before; i++) other.write(new Uint8Array(1));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const [client, server] = await pair();
    const left = Recorder.on(client);
    server.pause();
    const right = Recorder.on(server);
    const piece = new Uint8Array(10_000_000);
    client.write(piece);
    const queued = client.queuedBytes;
    client.write(new Uint8Array(5));
    expect(queued).toBeGreaterThan(0);
    expect(queued).toBeLessThan(piece.length);
    expect(client.queuedBytes).toBe(queued + 5);

    server.resume();
    await right.until(() => right.size === piece.length + 5);
    await left.until(() => left.drains > 0);
    expect([left.drains, client.queuedBytes]).toEqual([1, 0]);
  },
);

test("end sends the queue before it closes", async () => {
  const [client, server] = await pair();
  const left = Recorder.on(client);
  client.write(new Uint8Array(10_000_000));
  client.end();
  client.write(new Uint8Array(1));
  const right = Recorder.on(server);
  await Promise.all([right.closed, left.closed]);

  expect([right.size, right.closes, left.closes]).toEqual([10_000_000, ["orderly"], ["orderly"]]);
});

test("a last message reaches a peer that is still sending when we end", async () => {
  const [foreign, server] = await foreignPair();
  const right = Recorder.on(server);
  let received = "";
  const errors: string[] = [];
  foreign.on("error", (error) => errors.push(error.message));
  foreign.on("data", (chunk) => (received += chunk.toString()));
  foreign.write(new Uint8Array(200_000));
  server.write(Buffer.from("refused"));
  server.end();
  foreign.write(new Uint8Array(200_000));
  await new Promise<void>((resolve) => foreign.once("end", resolve));
  foreign.end();
  await right.closed;

  expect([received, errors]).toEqual(["refused", []]);
  expect(right.text).toBe("");
});

test("destroy closes at once and loses the queue, and no call is made from inside it", async () => {
  const [client, server] = await pair();
  const [left, right] = [Recorder.on(client), Recorder.on(server)];
  server.pause();
  client.write(new Uint8Array(20_000_000));
  client.destroy();
  expect([left.closes, client.queuedBytes]).toEqual([[], 0]);
  await left.closed;
  server.resume();
  await right.closed;

  expect(left.closes).toEqual(["orderly"]);
  expect(right.size).toBeLessThan(20_000_000);
});

test("a handler that throws costs its own connection only", async () => {
  const [client, server] = await pair();
  const left = Recorder.on(client);
  const closes: (string | undefined)[] = [];
  const closed = Promise.withResolvers<void>();
  server.setHandlers({
    data: () => {
      throw new Error("a bug");
    },
    drain: () => {},
    close: (error) => {
      closes.push(error?.message);
      closed.resolve();
    },
  });
  client.write(Buffer.from("x"));
  await Promise.all([left.closed, closed.promise]);

  expect(closes).toEqual(["a bug"]);
});

test("a refused connect is 08001 and names the system's reason, not the host", async () => {
  const { listener } = listen();
  listener.stop();
  const failure = transport.connect(listener.address, soon());

  expect(await rejection(failure)).toMatchObject({
    code: "ERR_CONNECT_FAILED",
    sqlState: "08001",
    message: "could not connect to the server: ECONNREFUSED",
  });
});

test("a connect past its deadline is 08001, and the connection that comes late is closed", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => server.close());
  const ended = Promise.withResolvers<void>();
  server.on("connection", (socket) => socket.on("error", () => {}).on("close", ended.resolve));
  const { port } = server.address() as AddressInfo;
  const late = new BunTransport({
    now: () => 0,
    wallNow: () => 0,
    schedule: (_delayMs, callback) => {
      callback();
      return { cancel: () => {} };
    },
  });

  expect(await rejection(late.connect({ host: "127.0.0.1", port }, 0))).toMatchObject({
    code: "ERR_CONNECT_TIMEOUT",
    sqlState: "08001",
  });
  await ended.promise;
});

test("a host that begins with a slash is the folder of a Unix socket", async () => {
  const folder = `/tmp/walgate-${process.pid}`;
  const failure = transport.connect({ host: folder, port: 5432 }, soon());
  expect(await rejection(failure)).toMatchObject({ code: "ERR_CONNECT_FAILED", sqlState: "08001" });

  await Bun.$`mkdir -p ${folder}`;
  const server = createServer((socket) => socket.end("hello"));
  await new Promise<void>((resolve) => server.listen(`${folder}/.s.PGSQL.5432`, resolve));
  const socket = await transport.connect({ host: folder, port: 5432 }, soon());
  const recorder = Recorder.on(socket);
  await recorder.closed;
  server.close();
  await Bun.$`rm -r ${folder}`;

  expect([recorder.text, socket.remoteAddress]).toEqual(["hello", folder]);
});

test("stop ends accepting and keeps what was accepted", async () => {
  const { listener, next } = listen();
  const [client, server] = await Promise.all([transport.connect(listener.address, soon()), next()]);
  const [left] = [Recorder.on(client), Recorder.on(server)];
  listener.stop();
  const failure = transport.connect(listener.address, soon());
  expect(await rejection(failure)).toMatchObject({ code: "ERR_CONNECT_FAILED" });
  server.write(Buffer.from("still here"));
  await left.until(() => left.text === "still here");
  client.destroy();

  expect(left.closes).toEqual([]);
});

test("random bytes are as many as asked and differ", () => {
  const [a, b] = [transport.randomBytes(18), transport.randomBytes(18)];
  expect([a.length, Buffer.from(a).equals(Buffer.from(b))]).toEqual([18, false]);
});

test("a peer that never closes its side is cut off at the end's deadline, not before", async () => {
  const fakeClock = new FakeClock();
  const accepted = Promise.withResolvers<ByteSocket>();
  const listener = new BunTransport(fakeClock).listen({ address: LOOPBACK }, accepted.resolve);
  const foreign = connectNode({ ...listener.address, allowHalfOpen: true });
  const server = await accepted.promise;
  const recorder = Recorder.on(server);
  server.end();
  await new Promise<void>((resolve) => foreign.once("end", resolve).resume());
  fakeClock.advance(4999);
  await settle();
  expect(recorder.closes).toEqual([]);

  fakeClock.advance(1);
  await recorder.closed;
  foreign.destroy();
  listener.stop();
  expect([recorder.closes, fakeClock.timerCount]).toEqual([["orderly"], 0]);
});

test("what many sockets write in one turn arrives whole and in order, whatever follows it on the same socket", async () => {
  const { listener, next } = listen();
  const peers: { socket: ByteSocket; received: string[]; recorder: Recorder }[] = [];
  for (let i = 0; i < 12; i++) {
    const [client, server] = await Promise.all([
      transport.connect(listener.address, soon()),
      next(),
    ]);
    cleanups.push(() => client.destroy());
    Recorder.on(client);
    const recorder = new Recorder();
    const received: string[] = [];
    server.setHandlers({
      data: (bytes) => received.push(Buffer.from(bytes).toString()),
      drain: () => {},
      close: (error) => recorder.close(error),
    });
    peers.push({ socket: client, received, recorder });
  }
  let expected = "";
  // Small ones alone, small before large and behind it, and so many small ones that they no longer wait.
  for (const sizes of [[3], [3, 5], [3, 5000, 4], [1500, 1500, 1500, 1500], [4095, 1], [4096]]) {
    for (let turn = 0; turn < 4; turn++) {
      const texts = sizes.map((size, i) => `${i}`.repeat(size));
      expected += texts.join("");
      for (const { socket } of peers) for (const text of texts) socket.write(Buffer.from(text));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  // The last words before an orderly end.
  for (const { socket } of peers) {
    socket.write(Buffer.from("bye"));
    socket.end();
  }
  await Promise.all(peers.map(({ recorder }) => recorder.closed));

  for (const { received } of peers) expect(received.join("") === `${expected}bye`).toBe(true);
});
