// Back-pressure through a relay, both ways, and the end of clients that take nothing.
import { beforeAll, describe, expect, test } from "bun:test";
import { CLIENT_QUEUE_MAX } from "#pool/session/output-flow.ts";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, server } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const ROW_BYTES = 100_000;
const ROW = server.dataRow("x".repeat(ROW_BYTES - 11));

/** A client that reads nothing while its server sends. */
async function slow(
  environment: ConstructorParameters<typeof RelayBench>[1] = {},
): Promise<{ bench: RelayBench; app: BenchClient }> {
  const bench = new RelayBench({}, environment);
  const app = bench.connect();
  await app.send(client.query("select 1"));
  bench.backend.hold();
  app.push(client.query("select 2"));
  await settled();
  bench.backend.discardHeld();
  app.answers();
  app.stopReading();
  return { bench, app };
}

async function sendRows(bench: RelayBench, count: number): Promise<void> {
  for (let i = 0; i < count; i++) bench.backend.send(ROW);
  await settled();
}

describe("a client that reads slowly", () => {
  test("its server is not read on past the limit, and is again once the client has caught up", async () => {
    const { bench, app } = await slow();

    await sendRows(bench, 10);
    const queued = app.queuedBytes;
    const isPaused = bench.backend.socket.isPaused;
    app.read();
    await settled();

    expect(queued).toBeGreaterThan(CLIENT_QUEUE_MAX);
    expect(queued).toBeLessThan(CLIENT_QUEUE_MAX + 2 * ROW_BYTES);
    expect(isPaused).toBe(true);
    expect(bench.backend.socket.isPaused).toBe(false);
  });

  test("it is not read from either, so that answers of ours don't pile up", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    app.stopReading();
    const syncs = new Uint8Array(5 * 100_000);
    for (let i = 0; i < 100_000; i++) syncs.set(client.sync(), i * 5);

    app.push(syncs);
    await settled();

    expect(app.isSuspended).toBe(true);
    expect(app.queuedBytes).toBeLessThan(CLIENT_QUEUE_MAX + 10);
  });

  test("when its answer is complete the connection goes back, though the client has not read it", async () => {
    const { bench, app } = await slow();
    const other = bench.connect();
    await sendRows(bench, 3);
    other.push(client.query("select 3"));

    bench.backend.send(server.commandComplete("SELECT 3"), server.ready("I"));
    await settled();
    const whileBlocked = other.answers();
    app.read();
    await settled();

    expect(whileBlocked).toEqual([]);
    expect(other.answers()).toEqual(["T", "D 3", "C SELECT 1", "Z I"]);
    expect(app.answers().at(-1)).toBe("Z I");
  });

  test("the cap over all clients holds one back long before its own limit", async () => {
    const { bench, app } = await slow({ output: { usedBytes: 0, bytesMax: 150_000 } });

    await sendRows(bench, 10);

    expect(app.queuedBytes).toBe(2 * ROW_BYTES);
    expect(bench.environment.output.usedBytes).toBe(2 * ROW_BYTES);
  });

  test("over that cap a client keeps its connection until it has read, so that those behind it add nothing", async () => {
    const { bench, app } = await slow({ output: { usedBytes: 0, bytesMax: 150_000 } });

    bench.backend.send(
      concatBytes([ROW, ROW, server.commandComplete("SELECT 2"), server.ready("I")]),
    );
    await settled();
    const unread = bench.leased;
    app.read();
    await settled();

    expect([unread, bench.leased]).toEqual([1, 0]);
  });

  test("a client that has taken everything is never held back, however full the cap is of others", async () => {
    const bench = new RelayBench({}, { output: { usedBytes: 1_000, bytesMax: 100 } });
    const app = bench.connect();

    expect(await app.send(client.query("select 1"))).toEqual(["T", "D 1", "C SELECT 1", "Z I"]);
    expect(app.isSuspended).toBe(false);
  });
});

describe("client_read_timeout", () => {
  test("a client that takes nothing is ended, its statement cancelled and the connection kept", async () => {
    const { bench, app } = await slow();
    await sendRows(bench, 10);

    bench.clock.advance(29_999);
    const before = app.aborted;
    bench.clock.advance(1);
    await bench.deliverCancels();
    bench.backend.send(server.error("57014", "canceling statement"), server.ready("I"));
    await settled();

    expect([before, app.aborted]).toEqual([undefined, { error: [] }]);
    expect({
      cancels: bench.cancels.length,
      leased: bench.leased,
      closed: bench.counters.slowReadersClosed,
    }).toEqual({ cancels: 1, leased: 0, closed: 1 });
  });

  test("any byte taken buys as much time again", async () => {
    const { bench, app } = await slow();
    await sendRows(bench, 10);

    bench.clock.advance(29_999);
    app.read(1);
    bench.clock.advance(1);
    bench.clock.advance(29_999);
    const before = app.aborted;
    bench.clock.advance(1);

    expect([before, app.aborted]).toEqual([undefined, { error: [] }]);
  });

  test("what was on its way when the limit was passed does not count against the client", async () => {
    const { bench, app } = await slow();
    // One chunk, forwarded in two parts: the second comes when the client is blocked already.
    bench.backend.send(ROW, ROW, ROW, server.error("22012", "division by zero"));
    await settled();

    app.read(10);
    bench.clock.advance(30_000);

    expect(app.aborted).toBeUndefined();
  });

  test("a client that has caught up has no deadline any more", async () => {
    const { bench, app } = await slow();
    await sendRows(bench, 10);

    app.read();
    await settled();
    app.read();
    bench.clock.advance(60_000);

    expect(app.aborted).toBeUndefined();
  });
});

describe("a server that reads slowly", () => {
  test("its client is not read on past the limit, and is again once the server has caught up", async () => {
    const bench = new RelayBench();
    bench.socketOptions = { windowBytes: 1_000 };
    const app = bench.connect();
    await app.send(client.query("copy t from stdin"));
    bench.backend.stopReading();

    for (let i = 0; i < 10; i++) app.push(client.copyData("x".repeat(50_000)));
    await settled();
    const isSuspended = app.isSuspended;
    bench.backend.resumeReading();
    await settled();
    app.push(client.copyDone());
    await settled();

    expect(isSuspended).toBe(true);
    expect(app.answers()).toEqual(["C COPY 10", "Z I"]);
  });

  test("a client whose copy fails while it is held back is read on", async () => {
    const bench = new RelayBench();
    bench.socketOptions = { windowBytes: 1_000 };
    const app = bench.connect();
    await app.send(client.query("copy t from stdin"));
    bench.backend.stopReading();
    for (let i = 0; i < 10; i++) app.push(client.copyData("x".repeat(50_000)));
    await settled();

    bench.backend.send(server.error("53100", "disk full"), server.ready("I"));
    await settled();

    expect(app.isSuspended).toBe(false);
    expect(app.answers()).toEqual(["E 53100 disk full", "Z I"]);
  });
});

test("a client with thousands of unanswered requests is not read on until half are answered", async () => {
  const bench = new RelayBench();
  const app = bench.connect();
  await app.send(client.query("begin"));
  bench.backend.hold();
  const queries = new Uint8Array(14 * 9_000);
  for (let i = 0; i < 9_000; i++) queries.set(client.query("select 1"), i * 14);

  app.push(queries);
  await settled();
  const isSuspended = app.isSuspended;
  bench.backend.release();
  await settled();

  expect([isSuspended, app.isSuspended]).toEqual([true, false]);
  expect(app.answers().filter((line) => line === "Z T")).toHaveLength(9_000);
});
