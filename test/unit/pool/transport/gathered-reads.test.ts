// While reads are gathered, what has arrived lies some time in the socket: whatever happens meanwhile, no byte is lost or out of order.
import { afterAll, beforeEach, expect, test } from "bun:test";
import { BunTransport } from "#pool/transport/bun-transport.ts";
import type { ByteSocket } from "#pool/transport/socket.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import { Recorder, rejection } from "./recorder.ts";

const clock = new SystemClock();
const transport = new BunTransport(clock);
const soon = (): number => clock.now() + 5000;
const accepted: ByteSocket[] = [];
const listener = transport.listen({ address: { host: "127.0.0.1", port: 0 } }, (socket) =>
  accepted.push(socket),
);
const clients: ByteSocket[] = [];
afterAll(() => {
  clients.forEach((client) => client.destroy());
  listener.stop();
});

async function pairs(count: number): Promise<{ client: ByteSocket; server: ByteSocket }[]> {
  const made: { client: ByteSocket; server: ByteSocket }[] = [];
  for (let i = 0; i < count; i++) {
    const client = await transport.connect(listener.address, soon());
    clients.push(client);
    while (accepted.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const server = accepted.shift();
    if (server === undefined) throw new Error("nothing was accepted");
    made.push({ client, server });
  }
  return made;
}

/** Both ends' bytes are in the kernel, and the next poll reports them together. */
function writeTogether(texts: readonly (readonly [ByteSocket, string])[]): void {
  for (const [socket, text] of texts) socket.write(Buffer.from(text));
}

beforeEach(async () => {
  // So many writes in one turn begin the gathering.
  const [other] = await pairs(1);
  for (let i = 0; i < 40; i++) other?.client.write(new Uint8Array(1));
  await new Promise((resolve) => setImmediate(resolve));
});

test("reading that stops between arrival and the turn's end keeps what has arrived until it goes on", async () => {
  const [one, other] = await pairs(2);
  if (one === undefined || other === undefined) throw new Error("no pairs");
  let isFirst = true;
  const [left, right] = [Recorder.on(one.server), Recorder.on(other.server)];
  for (const [mine, theirs, recorder] of [
    [one.server, other.server, left],
    [other.server, one.server, right],
  ] as const) {
    mine.setHandlers({
      data: (bytes) => {
        if (isFirst) theirs.pause();
        isFirst = false;
        recorder.data(bytes);
      },
      drain: () => {},
      close: () => {},
    });
  }
  writeTogether([
    [one.client, "a1"],
    [other.client, "b1"],
  ]);
  await left.until(() => left.size + right.size >= 2);
  await Bun.sleep(20);
  expect([left.text, right.text].toSorted()).toEqual(["", left.text === "" ? "b1" : "a1"]);

  writeTogether([
    [one.client, "a2"],
    [other.client, "b2"],
  ]);
  await Bun.sleep(20);
  one.server.resume();
  other.server.resume();
  await Promise.all([left.until(() => left.size === 4), right.until(() => right.size === 4)]);

  expect([left.text, right.text]).toEqual(["a1a2", "b1b2"]);
});

test.each(["end", "destroy"] as const)(
  "bytes that arrive together with the peer's %s are told ahead of it",
  async (how) => {
    const made = await pairs(8);
    const recorders = made.map(({ server }) => Recorder.on(server));
    for (const { client } of made) {
      client.write(Buffer.from("last words"));
      client[how]();
    }
    await Promise.all(recorders.map((recorder) => recorder.closed));

    expect(recorders.map(({ text, closes }) => [text, closes.length])).toEqual(
      made.map(() => ["last words", 1]),
    );
  },
);

test("a handler that throws at the turn's end costs its own connection only", async () => {
  const made = await pairs(4);
  const recorders = made.map(({ server }) => Recorder.on(server));
  const [bad] = made;
  bad?.server.setHandlers({
    data: () => {
      throw new Error("a bug");
    },
    drain: () => {},
    close: (error) => recorders[0]?.close(error),
  });
  writeTogether(made.map(({ client }) => [client, "hello"]));
  await Promise.all([
    recorders[0]?.closed,
    ...recorders.slice(1).map((recorder) => recorder.until(() => recorder.size === 5)),
  ]);

  expect(recorders.map(({ closes }) => closes)).toEqual([["a bug"], [], [], []]);
});

test("bytes that have arrived when a handshake begins are not taken for its own", async () => {
  const [one, other] = await pairs(2);
  if (one === undefined || other === undefined) throw new Error("no pairs");
  const { promise, resolve } = Promise.withResolvers<unknown>();
  let isFirst = true;
  for (const [mine, theirs] of [
    [one.server, other.server],
    [other.server, one.server],
  ] as const) {
    mine.setHandlers({
      data: () => {
        if (!isFirst) return;
        isFirst = false;
        const certificate = { key: "", cert: "" };
        resolve(rejection(transport.upgradeServer(theirs, certificate, soon())));
      },
      drain: () => {},
      close: () => {},
    });
  }
  writeTogether([
    [one.client, "a"],
    [other.client, "b"],
  ]);

  expect(await promise).toMatchObject({ code: "ERR_PROTOCOL_VIOLATION", sqlState: "08P01" });
});

test("a socket that is ended or destroyed with bytes in hand hears nothing of them", async () => {
  const made = await pairs(6);
  let handled = 0;
  for (const { server } of made) {
    server.setHandlers({
      data: () => {
        handled++;
        for (const [i, { server: each }] of made.entries()) {
          if (i % 2 === 0) each.end();
          else each.destroy();
        }
      },
      drain: () => {},
      close: () => {},
    });
  }
  const recorders = made.map(({ client }) => Recorder.on(client));
  writeTogether(made.map(({ client }) => [client, "x"]));
  await Promise.all(recorders.map((recorder) => recorder.closed));

  expect(handled).toBe(1);
});
