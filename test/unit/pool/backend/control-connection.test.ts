import { expect, test } from "bun:test";
import fc from "fast-check";
import { openControlConnection } from "#pool/backend/control-connection.ts";
import type { ControlConnection } from "#pool/backend/control-connection.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { FakeTransport, tearBySizes } from "#test/support/fake-socket.ts";
import type { SocketPairOptions } from "#test/support/fake-socket.ts";
import {
  READY,
  STARTED,
  ScriptedServer,
  errorFrame,
  fakeServer,
  frame,
  int32,
  parameterStatus,
  text,
} from "./scripted-server.ts";

interface Opened {
  readonly connection: ControlConnection;
  readonly server: ScriptedServer;
  readonly clock: FakeClock;
  readonly startup: readonly string[];
  closes: number;
}

const row = (cell: string): Uint8Array =>
  frame("D", Uint8Array.of(0, 1), int32(text(cell).length), text(cell));
const COMPLETE = frame("C", text("SELECT 1\0"));
const answer = (cell: string): Uint8Array =>
  concatBytes([frame("T", Uint8Array.of(0, 0)), row(cell), COMPLETE, READY]);

async function open(options: SocketPairOptions = {}): Promise<Opened> {
  const clock = new FakeClock();
  const accepted = Promise.withResolvers<ScriptedServer>();
  let startup: string[] = [];
  const transport = new FakeTransport((socket) => {
    const server = new ScriptedServer(socket);
    void server.startup().then((parameters) => {
      startup = parameters;
      server.send(STARTED);
      accepted.resolve(server);
    });
  }, options);
  const connection = await openControlConnection({
    transport,
    clock,
    server: fakeServer(),
    dbname: "shop",
    user: "walgate",
    password: undefined,
    deadline: 1000,
  });
  const opened: Opened = { connection, server: await accepted.promise, clock, startup, closes: 0 };
  connection.onClosed = () => void (opened.closes += 1);
  return opened;
}

async function outcome(query: Promise<readonly unknown[]>): Promise<unknown> {
  return query.catch((error: unknown) => error);
}

test("it logs in under the gateway's name and reads rows as text", async () => {
  const { connection, server, startup, clock } = await open();
  const query = connection.query("select 1", 1000);
  const message = await server.message();
  server.send(answer("1"));

  expect(startup).toEqual(
    ["application_name", "walgate", "client_encoding", "UTF8", "user", "walgate"].concat([
      "database",
      "shop",
    ]),
  );
  expect([message.type, Buffer.from(message.body).toString()]).toEqual(["Q", "select 1\0"]);
  expect(await query).toEqual([["1"]]);
  expect([connection.isOpen, clock.timerCount]).toEqual([true, 0]);
});

test("answers survive any tearing, with notices and parameters between them", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), async (sizes) => {
      const { connection, server } = await open({ tear: tearBySizes(sizes) });
      const query = connection.query("select 1; select 2", 1000);
      await server.message();
      server.send(
        frame("N", text("SNOTICE\0\0")),
        row("1"),
        COMPLETE,
        parameterStatus("in_hot_standby", "off"),
        row("2"),
        COMPLETE,
        READY,
      );
      expect(await query).toEqual([["1"], ["2"]]);
    }),
    { numRuns: 20, examples: [[[1]]] },
  );
});

test("one query runs at a time, in order", async () => {
  const { connection, server } = await open();
  const first = connection.query("select 1", 1000);
  const second = connection.query("select 2", 1000);
  expect(Buffer.from((await server.message()).body).toString()).toBe("select 1\0");
  let hasSecond = false;
  const next = server.message().then((message) => {
    hasSecond = true;
    return Buffer.from(message.body).toString();
  });
  await Bun.sleep(0);
  expect(hasSecond).toBe(false);

  server.send(answer("1"));
  expect(await next).toBe("select 2\0");
  server.send(answer("2"));
  expect(await Promise.all([first, second])).toEqual([[["1"]], [["2"]]]);
});

test("an error of the server rejects its query and leaves the connection usable", async () => {
  const { connection, server } = await open();
  const query = connection.query("select nowhere", 1000);
  await server.message();
  server.send(errorFrame("42703", "column does not exist"), READY);
  expect(await outcome(query)).toMatchObject({
    sqlState: "42703",
    message: "column does not exist",
  });

  const again = connection.query("select 1", 1000);
  await server.message();
  server.send(answer("1"));
  expect(await again).toEqual([["1"]]);
});

test("sixteen queries wait behind the running one, and one more is refused with 53300", async () => {
  const { connection } = await open();
  const queries = Array.from({ length: 17 }, () => outcome(connection.query("select 1", 1000)));
  const refused = await outcome(connection.query("select 1", 1000));
  expect(refused).toMatchObject({ code: "ERR_WAIT_QUEUE_FULL", sqlState: "53300" });

  connection.close();
  const errors = await Promise.all(queries);
  expect(errors.length).toBe(17);
  for (const error of errors) expect(error).toMatchObject({ sqlState: "08006" });
});

test("a deadline that passes while the query runs closes the connection with 57014", async () => {
  const opened = await open();
  const { connection, server, clock } = opened;
  const running = outcome(connection.query("select pg_sleep(9)", 50));
  const waiting = outcome(connection.query("select 1", 1000));
  clock.advance(49);
  expect(connection.isOpen).toBe(true);

  clock.advance(1);
  expect(connection.isOpen).toBe(false);
  expect(await running).toMatchObject({ code: "ERR_CANCELED", sqlState: "57014" });
  expect(await waiting).toMatchObject({ code: "ERR_CONNECTION_LOST", sqlState: "08006" });
  await server.closed();
  await Bun.sleep(0);
  expect([opened.closes, clock.timerCount]).toEqual([1, 0]);
});

test("a deadline that passes while the query waits takes only that query", async () => {
  const { connection, server, clock } = await open();
  const running = connection.query("select 1", 1000);
  const waiting = outcome(connection.query("select 2", 50));
  clock.advance(50);
  expect(await waiting).toMatchObject({ sqlState: "57014" });

  await server.message();
  server.send(answer("1"));
  expect(await running).toEqual([["1"]]);
  const next = connection.query("select 3", 1000);
  expect(Buffer.from((await server.message()).body).toString()).toBe("select 3\0");
  server.send(answer("3"));
  expect(await next).toEqual([["3"]]);
});

test("a farewell of the server is what its running query is rejected with", async () => {
  const opened = await open();
  const query = outcome(opened.connection.query("select 1", 1000));
  await opened.server.message();
  opened.server.send(errorFrame("57P01", "terminating connection"));
  opened.server.socket.end();

  expect(await query).toMatchObject({ sqlState: "57P01", severity: "FATAL" });
  expect([opened.connection.isOpen, opened.closes]).toEqual([false, 1]);
  expect(await outcome(opened.connection.query("select 1", 1000))).toMatchObject({
    sqlState: "08006",
  });
});

test("close says Terminate, tells its owner once, and refuses what comes after", async () => {
  const opened = await open();
  opened.connection.close();
  opened.connection.close();
  expect([(await opened.server.message()).type, opened.connection.isOpen]).toEqual(["X", false]);
  await opened.server.closed();
  await Bun.sleep(0);

  expect(opened.closes).toBe(1);
});

test("a query with a NUL in it is refused and nothing is sent", async () => {
  const { connection, server } = await open();
  expect(await outcome(connection.query("select 1\0X", 1000))).toMatchObject({
    sqlState: "08P01",
  });
  const query = connection.query("select 1", 1000);
  expect(Buffer.from((await server.message()).body).toString()).toBe("select 1\0");
  server.send(answer("1"));
  await query;
});

/** What a query ends with when the server answers `parts`, and whether the connection survives. */
async function ask(...parts: readonly Uint8Array[]): Promise<unknown> {
  const { connection, server } = await open();
  const query = outcome(connection.query("select 1", 1000));
  await server.message();
  server.send(...parts);
  const result = await query;
  return result instanceof Error ? [result, connection.isOpen] : result;
}

const bigRow = (frameBytes: number): Uint8Array => row("x".repeat(frameBytes - 5 - 2 - 4));

test("a row of exactly one megabyte is read, a byte more closes the connection", async () => {
  const size = 1_048_576;
  expect(await ask(bigRow(size), COMPLETE, READY)).toEqual([["x".repeat(size - 11)]]);
  expect(await ask(bigRow(size + 1), COMPLETE, READY)).toMatchObject([
    { code: "ERR_SERVER_PROTOCOL", sqlState: "08P01" },
    false,
  ]);
  expect(await ask(bigRow(size - 20), row("x".repeat(9)), COMPLETE, READY)).toMatchObject([
    [expect.any(String)],
    ["x".repeat(9)],
  ]);
  expect(await ask(bigRow(size - 20), row("x".repeat(10)), COMPLETE, READY)).toMatchObject([
    { code: "ERR_LIMIT_EXCEEDED", sqlState: "54000" },
    false,
  ]);
});

test.each([
  ["an impossible length", concatBytes([text("D"), int32(3)])],
  ["a header that promises 2 GB", concatBytes([text("D"), int32(0x7fff_ffff)])],
  ["a row that is longer than its frame", frame("D", Uint8Array.of(0, 9))],
  ["copy in", frame("G", Uint8Array.of(0, 0, 0))],
  ["copy out", frame("H", Uint8Array.of(0, 0, 0))],
  ["a second login", frame("R", int32(0))],
])("%s closes the connection with 08P01", async (_what, lie) => {
  expect(await ask(lie)).toMatchObject([{ code: "ERR_SERVER_PROTOCOL", sqlState: "08P01" }, false]);
});

test("an answer to no query closes the connection", async () => {
  const opened = await open();
  opened.server.send(READY);
  await opened.server.closed();
  await Bun.sleep(0);
  expect([opened.connection.isOpen, opened.closes]).toEqual([false, 1]);
});
