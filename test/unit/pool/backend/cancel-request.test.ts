import { expect, test } from "bun:test";
import { sendCancelRequest } from "#pool/backend/cancel-request.ts";
import type { SslMode } from "#pool/routing/server.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { FakeTransport } from "#test/support/fake-socket.ts";
import { rejection } from "#test/unit/pool/transport/recorder.ts";
import { ScriptedServer, fakeServer, text } from "./scripted-server.ts";

interface Attempt {
  readonly clock: FakeClock;
  readonly transport: FakeTransport;
  readonly done: Promise<void>;
  /** "waiting" until the request has resolved or rejected. */
  readonly state: () => string;
}

function cancel(
  script: (server: ScriptedServer) => Promise<void>,
  mode: SslMode = "disable",
  secretKey: Uint8Array = Uint8Array.of(1, 2, 3, 4),
): Attempt {
  const clock = new FakeClock();
  const transport = new FakeTransport((socket) => {
    script(new ScriptedServer(socket)).catch(() => {});
  });
  let state = "waiting";
  const done = sendCancelRequest({
    transport,
    clock,
    server: fakeServer(mode),
    processId: 4711,
    secretKey,
    deadline: 1000,
  });
  done.then(
    () => (state = "done"),
    () => (state = "failed"),
  );
  return { clock, transport, done, state: () => state };
}

test("sixteen bytes go out, and the request is done when the server has closed, not before", async () => {
  let packet = "";
  const close = Promise.withResolvers<void>();
  const attempt = cancel(async (server) => {
    packet = Buffer.from(await server.bytes(16)).toString("hex");
    await close.promise;
    server.socket.end();
  });
  await Bun.sleep(0);
  expect([packet, attempt.state()]).toEqual(["0000001004d2162e0000126701020304", "waiting"]);

  close.resolve();
  await attempt.done;
  expect(attempt.clock.timerCount).toBe(0);
});

test("a longer key makes a longer request", async () => {
  let packet = "";
  const attempt = cancel(
    async (server) => {
      packet = Buffer.from(await server.bytes(44)).toString("hex");
      server.socket.end();
    },
    "disable",
    new Uint8Array(32).fill(0xab),
  );
  await attempt.done;
  expect(packet).toBe(`0000002c04d2162e00001267${"ab".repeat(32)}`);
});

test("the key travels over TLS when the server's mode asks for it", async () => {
  const attempt = cancel(async (server) => {
    await server.bytes(8);
    server.send(text("S"));
    await server.bytes(16);
    server.socket.end();
  }, "require");
  await attempt.done;
  expect(attempt.transport.upgrades.length).toBe(1);
});

test("a reset closes the connection as well as an end does", async () => {
  const attempt = cancel(async (server) => {
    await server.bytes(16);
    server.socket.break(new Error("ECONNRESET"));
  });
  await attempt.done;
  expect(attempt.state()).toBe("done");
});

test("a server that does not close fails the request at its deadline, not before", async () => {
  const attempt = cancel(async (server) => {
    await server.bytes(16);
  });
  await Bun.sleep(0);
  attempt.clock.advance(999);
  await Bun.sleep(0);
  expect(attempt.state()).toBe("waiting");

  attempt.clock.advance(1);
  expect(await rejection(attempt.done)).toMatchObject({
    code: "ERR_CONNECT_TIMEOUT",
    sqlState: "08001",
  });
  expect(attempt.transport.connected[0]?.isClosed).toBe(true);
});
