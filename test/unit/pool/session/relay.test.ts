// A relay between one client and model servers: when a connection is taken and given back, and when the client is held.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client } from "#test/support/wire-frames.ts";
import { RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

describe("the life of a lease", () => {
  test("a query is answered and its connection given back", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const answers = await app.send(client.query("select 1"));

    expect(answers).toEqual(["T", "D 1", "C SELECT 1", "Z I"]);
    expect({
      leased: bench.leased,
      isBusy: app.relay.isBusy,
      servedBy: app.relay.servedBy,
    }).toEqual({
      leased: 0,
      isBusy: false,
      servedBy: { role: "primary", server: "primary" },
    });
  });

  test("a pipeline with several Syncs keeps its connection until the last is answered", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await app.send(client.query("select 1"));
    bench.backend.hold();

    app.push(client.unnamed("insert into t values (1)"), client.unnamed("select 2"));
    await settled();
    other.push(client.query("select 3"));
    await settled();
    bench.backend.release(60);
    await settled();
    const whileOwed = bench.leased;
    bench.backend.release();
    await settled();

    expect(whileOwed).toBe(1);
    expect(app.answers().filter((line) => line.startsWith("Z"))).toEqual(["Z I", "Z I"]);
    expect(other.answers()).toEqual(["T", "D 3", "C SELECT 1", "Z I"]);
  });

  test("an open transaction keeps its connection, and its end gives it back", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    await app.send(client.query("begin"));
    const inside = bench.leased;
    await app.send(client.query("select 1/0"));
    const failed = bench.leased;
    const answers = await app.send(client.query("commit"));

    expect([inside, failed, bench.leased]).toEqual([1, 1, 0]);
    expect(answers).toEqual(["C ROLLBACK", "Z I"]);
  });

  test("a message of the extended protocol without its Sync keeps the connection", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const flushed = await app.send(client.parse("", "select 1"), client.flush());
    const leased = bench.leased;
    const answers = await app.send(client.bind("", ""), client.execute(""), client.sync());

    expect({ flushed, leased, answers, after: bench.leased }).toEqual({
      flushed: ["1"],
      leased: 1,
      answers: ["2", "D 1", "C SELECT 1", "Z I"],
      after: 0,
    });
  });

  test("a portal that was left suspended belongs to its transaction, across Syncs", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("begin"));

    const first = await app.send(
      client.parse("", "select * from generate_series(1, 3)"),
      client.bind("p", ""),
      client.execute("p", 2),
      client.sync(),
    );
    const second = await app.send(client.execute("p", 2), client.closePortal("p"), client.sync());

    expect(first).toEqual(["1", "2", "D 1", "D 2", "s", "Z T"]);
    expect(second).toEqual(["D 3", "C SELECT 1", "3", "Z T"]);
  });

  test("a Query that ends a segment without a Sync gives the connection back", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const answers = await app.send(
      client.parse("s1", "insert into t values (1)"),
      client.query("select 1"),
    );

    expect(answers).toEqual(["1", "T", "D 1", "C SELECT 1", "Z I"]);
    expect(bench.leased).toBe(0);
  });

  test("a Query behind a failed message is skipped with it", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const failed = await app.send(client.parse("", "select * from nothing_here"), client.flush());
    const skipped = await app.send(client.query("select 1"), client.bind("", ""));
    const leased = bench.leased;
    const synced = await app.send(client.sync());

    expect({ failed, skipped, leased, synced, after: bench.leased }).toEqual({
      failed: ['E 42P01 relation "nothing_here" does not exist'],
      skipped: [],
      leased: 1,
      synced: ["Z I"],
      after: 0,
    });
  });

  test("a lone Sync is answered without any server", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    expect(await app.send(client.sync(), client.sync())).toEqual(["Z I", "Z I"]);
    expect(bench.backends).toEqual([]);
  });

  test("messages of one chunk leave in one write, and neighbours uncopied", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("select 1"));
    const writes: number[] = [];
    const { socket } = bench.backend;
    const write = socket.write.bind(socket);
    socket.write = (bytes) => {
      writes.push(bytes.length);
      write(bytes);
    };
    const bytes = client.unnamed("insert into t values (1)");

    await app.send(bytes);

    expect(writes).toEqual([bytes.length]);
  });
});

describe("input is held", () => {
  test("while a connection is waited for, no further message is taken", async () => {
    const bench = new RelayBench();
    const holder = bench.connect();
    await holder.send(client.query("begin"));
    const app = bench.connect();

    app.push(client.query("select 1"), client.query("select 2"));
    await settled();
    const isSuspended = app.isSuspended;
    await holder.send(client.query("commit"));

    expect(isSuspended).toBe(true);
    expect(app.answers()).toEqual([
      "T",
      "D 1",
      "C SELECT 1",
      "Z I",
      "T",
      "D 2",
      "C SELECT 1",
      "Z I",
    ]);
    expect(app.isSuspended).toBe(false);
  });

  test("a message that is delivered all the same is a programmer's error", async () => {
    const bench = new RelayBench();
    const holder = bench.connect();
    await holder.send(client.query("begin"));
    const app = bench.connect();
    app.push(client.query("select 1"));

    expect(() => app.relay.frame(client.sync()[0] ?? 0, client.sync())).toThrow("suspended");
  });

  test("a router that takes its time holds the client as well", async () => {
    const bench = new RelayBench();
    bench.cluster.waiting = Promise.withResolvers();
    const app = bench.connect();

    app.push(client.query("select 1"));
    await settled();
    const isSuspended = app.isSuspended;
    bench.cluster.waiting.resolve({
      role: "primary",
      servers: [bench.cluster.primary],
      reason: "wait_timeout",
    });
    await settled();

    expect(isSuspended).toBe(true);
    expect(app.answers()).toEqual(["T", "D 1", "C SELECT 1", "Z I"]);
    expect(Object.fromEntries(bench.counters.routes)).toEqual({ wait_timeout: 1 });
  });
});

describe("messages that clients may not send", () => {
  test("an unknown type ends the session with 08P01", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    await app.send(client.query("begin"));
    app.relay.frame("p".charCodeAt(0), new Uint8Array([0x70, 0, 0, 0, 4]));
    await settled();

    expect(app.aborted).toEqual({ error: ["E FATAL 08P01 invalid frontend message type 112"] });
    expect(bench.leased).toBe(0);
    expect(bench.backend.model.status).toBe("I");
  });

  test("malformed messages fail as they do in PostgreSQL, and the session goes on", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const parse = client.parse("s1", "select 1", [23]);
    // Says one type more than it has.
    parse[parse.length - 5] = 2;

    const answers = await app.send(parse, client.sync(), client.query("select 1"));

    expect(answers).toEqual([
      "E 08P01 invalid message format",
      "Z I",
      "T",
      "D 1",
      "C SELECT 1",
      "Z I",
    ]);
  });
});
