// A supervisor owns the listening socket and its workers inherit it: a socket made by the system's own calls, like any
// supervisor makes it, accepts connections in this process and in children. Linux only, as the socket's address is laid out.
import { dlopen, ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { closeSync, readFileSync, readlinkSync } from "node:fs";
import { BunTransport } from "#pool/transport/bun-transport.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import { Recorder, rejection } from "./recorder.ts";

const clock = new SystemClock();
const transport = new BunTransport(clock);
const BACKLOG = 128;

interface ListeningSocket {
  readonly fd: number;
  readonly port: number;
}

function listenBySystemCalls(): ListeningSocket {
  const { symbols: libc } = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    listen: { args: ["i32", "i32"], returns: "i32" },
  });
  const [inet, stream] = [2, 1];
  const fd = libc.socket(inet, stream, 0);
  // sockaddr_in: family in the machine's order, port 0, 127.0.0.1.
  const address = Uint8Array.of(inet, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  const results = [libc.bind(fd, ptr(address), address.length), libc.listen(fd, BACKLOG)];
  if (fd < 0 || results.some((result) => result !== 0)) throw new Error("no listening socket");
  return { fd, port: portOf(fd) };
}

function portOf(fd: number): number {
  const inode = /\d+/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[0];
  const line = readFileSync("/proc/self/net/tcp", "utf8")
    .split("\n")
    .find((text) => text.trim().split(/\s+/)[9] === inode);
  return Number.parseInt(line?.trim().split(/\s+/)[1]?.split(":")[1] ?? "", 16);
}

async function ask(port: number): Promise<string> {
  const socket = await transport.connect({ host: "127.0.0.1", port }, clock.now() + 5000);
  const recorder = Recorder.on(socket);
  await recorder.closed;
  return recorder.text;
}

test.skipIf(process.platform !== "linux")("an inherited socket accepts until stop", async () => {
  const { fd, port } = listenBySystemCalls();
  const listener = transport.listen({ address: { host: "127.0.0.1", port }, fd }, (socket) => {
    socket.setHandlers({ data: () => {}, drain: () => {}, close: () => {} });
    socket.write(Buffer.from("inherited"));
    socket.end();
  });
  expect(await ask(port)).toBe("inherited");
  expect(listener.address).toEqual({ host: "127.0.0.1", port });

  listener.stop();
  const failure = ask(port);
  expect(await rejection(failure)).toMatchObject({ code: "ERR_CONNECT_FAILED" });
});

const WORKER = `
  import { BunTransport } from "#pool/transport/bun-transport.ts";
  import { SystemClock } from "#pool/time/system-clock.ts";
  const [host, port, name] = process.argv.slice(-3);
  const transport = new BunTransport(new SystemClock());
  transport.listen({ address: { host, port: Number(port) }, fd: 3 }, (socket) => {
    socket.setHandlers({ data: () => {}, drain: () => {}, close: () => {} });
    socket.write(Buffer.from(name));
    socket.end();
  });
  console.log("listening");
`;

function startWorker(socket: ListeningSocket, name: string): Bun.Subprocess<"ignore", "pipe"> {
  return Bun.spawn([process.execPath, "-e", WORKER, "--", "127.0.0.1", String(socket.port), name], {
    cwd: `${import.meta.dir}/../../../..`,
    stdio: ["ignore", "pipe", "inherit", socket.fd],
    timeout: 30_000,
  });
}

test.skipIf(process.platform !== "linux")(
  "connections that wait when one worker stops are served by the other",
  async () => {
    const socket = listenBySystemCalls();
    const first = startWorker(socket, "first");
    await first.stdout.getReader().read();
    expect(await ask(socket.port)).toBe("first");

    first.kill("SIGSTOP");
    const waiting = Array.from({ length: 20 }, () => ask(socket.port));
    const second = startWorker(socket, "second");
    first.kill("SIGKILL");
    const answers = await Promise.all(waiting);
    second.kill();
    await Promise.all([first.exited, second.exited]);
    closeSync(socket.fd);

    expect(answers.length).toBe(20);
    expect(new Set(answers)).toEqual(new Set(["second"]));
  },
);
