import { expect, test } from "bun:test";
import { openServerSocket } from "#pool/backend/server-tls.ts";
import { PoolError } from "#pool/errors.ts";
import type { SslMode } from "#pool/routing/server.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { FakeTransport, tearBySizes } from "#test/support/fake-socket.ts";
import { rejection } from "#test/unit/pool/transport/recorder.ts";
import { SSL_REQUEST, ScriptedServer, fakeServer, text } from "./scripted-server.ts";

interface Outcome {
  /** Hex of the first eight bytes that the server got. */
  asked: string;
  readonly result: string;
  readonly upgrades: number;
  readonly isClosed: boolean;
}

/** Opens a socket to a server that answers the TLS request with `answer`; nothing else is ever sent. */
async function open(mode: SslMode, answer: string, host = "db.test"): Promise<Outcome> {
  const clock = new FakeClock();
  let asked = "";
  const transport = new FakeTransport((socket) => {
    const server = new ScriptedServer(socket);
    const script = async (): Promise<void> => {
      asked = Buffer.from(await server.bytes(8)).toString("hex");
      if (answer === "end") socket.end();
      else server.send(text(answer));
    };
    script().catch(() => {});
  });
  const result = await openServerSocket({
    transport,
    clock,
    server: fakeServer(mode, host),
    deadline: 1000,
  }).then(
    (socket) => (socket.isSecure ? "TLS" : "plain"),
    (error: unknown) => (error instanceof PoolError ? `${error.code} ${error.sqlState}` : "?"),
  );
  return {
    asked,
    result,
    upgrades: transport.upgrades.length,
    isClosed: transport.connected[0]?.isClosed ?? false,
  };
}

test.each(["prefer", "require", "verify-ca", "verify-full"] as const)(
  "%s asks for TLS and goes on with it when the server agrees",
  async (mode) => {
    expect(await open(mode, "S")).toEqual({
      asked: SSL_REQUEST,
      result: "TLS",
      upgrades: 1,
      isClosed: false,
    });
  },
);

test.each([
  ["prefer", "plain", false],
  ["require", "ERR_CONNECT_FAILED 08001", true],
  ["verify-ca", "ERR_CONNECT_FAILED 08001", true],
  ["verify-full", "ERR_CONNECT_FAILED 08001", true],
] as const)("%s with a server that refuses TLS: %s", async (mode, result, isClosed) => {
  expect(await open(mode, "N")).toEqual({ asked: SSL_REQUEST, result, upgrades: 0, isClosed });
});

test("disable and a Unix socket ask for nothing", async () => {
  const plain = { asked: "", result: "plain", upgrades: 0, isClosed: false };
  expect(await open("disable", "S")).toEqual(plain);
  expect(await open("verify-full", "S", "/run/postgresql")).toEqual(plain);
});

test.each([
  // A byte behind the answer in the same read: CVE-2021-23222.
  ["S\0", "ERR_SERVER_PROTOCOL 08P01"],
  ["SR", "ERR_SERVER_PROTOCOL 08P01"],
  ["NR", "ERR_SERVER_PROTOCOL 08P01"],
  ["X", "ERR_SERVER_PROTOCOL 08P01"],
  ["HTTP/1.1 400", "ERR_SERVER_PROTOCOL 08P01"],
  ["E\0\0\0\x05\0", "ERR_CONNECT_FAILED 08001"],
  ["end", "ERR_CONNECT_FAILED 08001"],
])("the answer %j ends the connection without a handshake", async (answer, result) => {
  expect(await open("prefer", answer)).toEqual({
    asked: SSL_REQUEST,
    result,
    upgrades: 0,
    isClosed: true,
  });
});

test("a server that never answers the TLS request costs its deadline, not less", async () => {
  const clock = new FakeClock();
  const transport = new FakeTransport(() => {}, { tear: tearBySizes([1]) });
  const outcome = openServerSocket({
    transport,
    clock,
    server: fakeServer("prefer"),
    deadline: 1000,
  });
  await Bun.sleep(0);
  clock.advance(999);
  expect(transport.connected[0]?.isClosed).toBe(false);

  clock.advance(1);
  expect(await rejection(outcome)).toMatchObject({
    code: "ERR_CONNECT_TIMEOUT",
    sqlState: "08001",
  });
  expect(transport.connected[0]?.isClosed).toBe(true);
});

test("the handshake gets the mode, the authority and the host's name", async () => {
  const transport = new FakeTransport((socket) => {
    const server = new ScriptedServer(socket);
    void server.bytes(8).then(() => server.send(text("S")));
  });
  const server = { ...fakeServer(), tls: { mode: "verify-full", ca: "PEM" } } as const;
  await openServerSocket({ transport, clock: new FakeClock(), server, deadline: 1000 });

  expect(transport.upgrades).toEqual([{ tls: server.tls, host: "db.test" }]);
});
