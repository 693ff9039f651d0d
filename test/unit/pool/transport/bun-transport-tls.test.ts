// TLS on real sockets, our client against our server: what is tested here is what Bun's TLS does.
import { afterAll, expect, test } from "bun:test";
import { connect as connectTls } from "node:tls";
import { connect as connectNode } from "node:net";
import type { Socket } from "node:net";
import { BunSocket } from "#pool/transport/bun-socket.ts";
import { BunTransport } from "#pool/transport/bun-transport.ts";
import type { ByteSocket } from "#pool/transport/socket.ts";
import type { ServerTls, SslMode } from "#pool/routing/server.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import { makeCertificate } from "./certificates.ts";
import { Recorder, rejection } from "./recorder.ts";

const clock = new SystemClock();
const transport = new BunTransport(clock);
const soon = (): number => clock.now() + 5000;

const authority = makeCertificate({ name: "walgate test authority" });
const trusted = {
  "the right authority": authority.cert,
  "a foreign authority": makeCertificate({ name: "walgate foreign authority" }).cert,
};
const right = makeCertificate({ name: "db", hosts: ["db.test", "127.0.0.1"], issuer: authority });

/** Upgrades each connection after its first byte, as after an SSLRequest, and echoes from there. */
const listener = transport.listen({ address: { host: "127.0.0.1", port: 0 } }, (socket) => {
  socket.setHandlers({
    data: () => {
      socket.write(Buffer.from("S"));
      void transport.upgradeServer(socket, right, soon()).then(echo, () => {});
    },
    drain: () => {},
    close: () => {},
  });
});
afterAll(() => listener.stop());

function echo(socket: ByteSocket): void {
  socket.setHandlers({
    data: (bytes) => socket.write(bytes),
    drain: () => {},
    close: () => {},
  });
}

/** Connects and has the server answer the first byte; the handshake is the caller's. */
async function requested(): Promise<ByteSocket> {
  const socket = await transport.connect(listener.address, soon());
  const recorder = Recorder.on(socket);
  socket.write(Buffer.from("?"));
  await recorder.until(() => recorder.text === "S");
  return socket;
}

async function upgrade(mode: SslMode, ca: string, host: string): Promise<string> {
  const socket = await requested();
  const tls: ServerTls = { mode, ca };
  try {
    const secure = await transport.upgradeClient(socket, tls, host, soon());
    const recorder = Recorder.on(secure);
    secure.write(Buffer.from("hello"));
    await recorder.until(() => recorder.text === "hello");
    secure.end();
    await recorder.closed;
    return `echoed, ${recorder.closes.join()}`;
  } catch (error) {
    return error instanceof Error ? error.message : "?";
  }
}

const REFUSED = "the server's certificate was refused";

test.each([
  ["require", "the right authority", "db.test", "echoed, orderly"],
  ["require", "a foreign authority", "db.test", "echoed, orderly"],
  ["require", "a foreign authority", "other.test", "echoed, orderly"],
  ["prefer", "a foreign authority", "other.test", "echoed, orderly"],
  ["verify-ca", "the right authority", "db.test", "echoed, orderly"],
  ["verify-ca", "the right authority", "other.test", "echoed, orderly"],
  ["verify-ca", "a foreign authority", "db.test", `${REFUSED}: UNABLE_TO_VERIFY_LEAF_SIGNATURE`],
  ["verify-ca", "a foreign authority", "other.test", `${REFUSED}: UNABLE_TO_VERIFY_LEAF_SIGNATURE`],
  ["verify-full", "the right authority", "db.test", "echoed, orderly"],
  ["verify-full", "the right authority", "127.0.0.1", "echoed, orderly"],
  ["verify-full", "the right authority", "127.0.0.2", `${REFUSED}: ERR_TLS_CERT_ALTNAME_INVALID`],
  ["verify-full", "the right authority", "other.test", `${REFUSED}: ERR_TLS_CERT_ALTNAME_INVALID`],
  ["verify-full", "a foreign authority", "db.test", `${REFUSED}: UNABLE_TO_VERIFY_LEAF_SIGNATURE`],
] as const)("%s, trusting %s, asking for %s: %s", async (mode, ca, host, outcome) => {
  expect(await upgrade(mode, trusted[ca], host)).toBe(outcome);
});

test("the peer's certificate is at hand on a TLS socket and nowhere else", async () => {
  const socket = await requested();
  expect(transport.peerCertificate(socket)).toBeUndefined();
  await transport.upgradeClient(socket, { mode: "require", ca: undefined }, "db.test", soon());

  expect(transport.peerCertificate(socket)).toEqual(right.der);
  expect(socket.isSecure).toBe(true);
  socket.destroy();
});

test("handlers of before the handshake see nothing of what comes after it", async () => {
  const socket = await transport.connect(listener.address, soon());
  const before = Recorder.on(socket);
  socket.write(Buffer.from("?"));
  await before.until(() => before.size > 0);
  await transport.upgradeClient(socket, { mode: "require", ca: undefined }, "db.test", soon());
  const after = Recorder.on(socket);
  socket.write(Buffer.from("hello"));
  await after.until(() => after.text === "hello");
  socket.destroy();
  await after.closed;

  expect([before.text, before.closes]).toEqual(["S", []]);
});

test("a paused TLS reader loses nothing, and the writer's queue drains once", async () => {
  const socket = await requested();
  await transport.upgradeClient(socket, { mode: "require", ca: undefined }, "db.test", soon());
  const recorder = Recorder.on(socket);
  socket.pause();
  const total = 12_000_000;
  socket.write(new Uint8Array(total));
  expect(socket.queuedBytes).toBeGreaterThan(0);
  await recorder.until(() => recorder.drains > 0);
  expect([recorder.size, recorder.drains]).toEqual([0, 1]);

  socket.resume();
  await recorder.until(() => recorder.size === total);
  expect(socket.queuedBytes).toBe(0);
  socket.destroy();
});

test("a peer that never answers costs a handshake its deadline", async () => {
  const silent = transport.listen({ address: { host: "127.0.0.1", port: 0 } }, (socket) =>
    socket.setHandlers({ data: () => {}, drain: () => {}, close: () => {} }),
  );
  const socket = await transport.connect(silent.address, soon());
  const tls: ServerTls = { mode: "require", ca: undefined };
  const failure = transport.upgradeClient(socket, tls, "db.test", clock.now() + 20);

  expect(await rejection(failure)).toMatchObject({
    code: "ERR_CONNECT_TIMEOUT",
    sqlState: "08001",
  });
  const recorder = Recorder.on(socket);
  await recorder.closed;
  silent.stop();
});

test.each([
  ["garbage", (socket: ByteSocket) => socket.write(Buffer.from("this is no handshake at all"))],
  ["an end", (socket: ByteSocket) => socket.end()],
  ["a reset", (socket: ByteSocket) => socket.destroy()],
])("%s in place of the server's handshake is 08001", async (_name, answer) => {
  const liar = transport.listen({ address: { host: "127.0.0.1", port: 0 } }, (socket) =>
    socket.setHandlers({ data: () => answer(socket), drain: () => {}, close: () => {} }),
  );
  const socket = await transport.connect(liar.address, soon());
  const tls: ServerTls = { mode: "require", ca: undefined };
  const failure = transport.upgradeClient(socket, tls, "db.test", soon());

  expect(await rejection(failure)).toMatchObject({
    code: "ERR_CONNECT_FAILED",
    sqlState: "08001",
    message: expect.stringMatching(/^TLS handshake failed: /),
  });
  liar.stop();
});

/** A client of another make; `alpn` as it offers it. */
function foreignClient(alpn: string[] | undefined): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const raw: Socket = connectNode(listener.address);
  raw.on("error", (error) => resolve(error.message));
  raw.write("?");
  raw.once("data", () => {
    const tls = connectTls({
      socket: raw,
      ca: authority.cert,
      servername: "db.test",
      ...(alpn === undefined ? {} : { ALPNProtocols: alpn }),
    });
    tls.on("error", (error) => resolve(`failed: ${error.message}`));
    tls.once("secureConnect", () => tls.write("hello"));
    tls.once("data", (data) => {
      resolve(`${data.toString()} ${String(tls.alpnProtocol)}`);
      tls.destroy();
    });
  });
  return promise;
}

test("a client that offers the protocol's name gets it, and one that offers none passes", async () => {
  expect(await foreignClient(["postgresql"])).toBe("hello postgresql");
  expect(await foreignClient(undefined)).toBe("hello false");
});

test("a client that offers only another protocol is refused", async () => {
  expect(await foreignClient(["h2"])).toMatch(/^failed: /);
});

/** The error of a server-side handshake on a socket that `prepare` has put into some state. */
async function handshakeAfter(prepare: (socket: ByteSocket) => void): Promise<unknown> {
  const outcome = Promise.withResolvers<unknown>();
  const strict = transport.listen({ address: { host: "127.0.0.1", port: 0 } }, (socket) => {
    prepare(socket);
    outcome.resolve(rejection(transport.upgradeServer(socket, right, soon())));
  });
  const client = await transport.connect(strict.address, soon());
  const error = await outcome.promise;
  client.destroy();
  strict.stop();
  return error;
}

test("bytes that were read but not delivered before the handshake end the connection", async () => {
  const error = await handshakeAfter((socket) => {
    if (!(socket instanceof BunSocket)) throw new Error("not a socket of Bun's");
    // As from Bun, in the same turn of the loop in which the owner pauses.
    socket.receive(Buffer.from("select 1"));
  });
  expect(error).toMatchObject({ code: "ERR_PROTOCOL_VIOLATION", sqlState: "08P01" });
});

test("a handshake does not overtake bytes that wait to be sent in clear", async () => {
  const error = await handshakeAfter((socket) => socket.write(new Uint8Array(20_000_000)));
  expect(error).toMatchObject({ code: "ERR_PROTOCOL_VIOLATION", sqlState: "08P01" });
});

test("a socket that has closed refuses the handshake", async () => {
  const error = await handshakeAfter((socket) => socket.destroy());
  expect(error).toMatchObject({ code: "ERR_CONNECT_FAILED", sqlState: "08006" });
});

test("a certificate that can't be used refuses the handshake, not the process", async () => {
  const broken = transport.listen({ address: { host: "127.0.0.1", port: 0 } }, (socket) => {
    socket.setHandlers({
      data: () => {
        const certificate = { key: "no key", cert: "no certificate" };
        transport.upgradeServer(socket, certificate, soon()).then(outcome.resolve, outcome.resolve);
      },
      drain: () => {},
      close: () => {},
    });
  });
  const outcome = Promise.withResolvers<unknown>();
  const client = await transport.connect(broken.address, soon());
  const recorder = Recorder.on(client);
  client.write(Buffer.from("?"));
  await recorder.closed;
  broken.stop();

  expect(await outcome.promise).toMatchObject({ code: "ERR_CONNECT_FAILED", sqlState: "08001" });
});
