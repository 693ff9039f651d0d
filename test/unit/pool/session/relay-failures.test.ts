// What a client is told when no connection can be had, or the one that serves it is lost.
import { beforeAll, describe, expect, test } from "bun:test";
import { PoolError } from "#pool/errors.ts";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, server } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const LOST = "E 08006 server closed the connection unexpectedly";
const ROW = ["T", "D 1", "C SELECT 1", "Z I"];

/** All connections are in use: the next request has to wait. */
async function crowded(profile: ConstructorParameters<typeof RelayBench>[0] = {}): Promise<{
  bench: RelayBench;
  holder: BenchClient;
  app: BenchClient;
}> {
  const bench = new RelayBench(profile);
  const holder = bench.connect();
  await holder.send(client.query("begin"));
  return { bench, holder, app: bench.connect() };
}

describe("no connection", () => {
  test("after query_wait_timeout the request gets 57014, and the client stays", async () => {
    const { bench, holder, app } = await crowded();
    app.push(client.query("select 1"));
    await settled();

    bench.clock.advance(4_999);
    const early = app.answers();
    bench.clock.advance(1);
    const late = app.answers();
    await holder.send(client.query("commit"));

    expect([early, late]).toEqual([[], ["E 57014 query_wait_timeout", "Z I"]]);
    expect(await app.send(client.query("select 1"))).toEqual(ROW);
  });

  test("a full queue gives 53300 at once", async () => {
    const { app, bench } = await crowded({ waitQueueMax: 1 });
    bench.connect().push(client.query("select 1"));

    expect(await app.send(client.query("select 1"))).toEqual([
      "E 53300 too many requests wait for a connection",
      "Z I",
    ]);
    expect(app.isSuspended).toBe(false);
    expect(bench.leased).toBe(1);
  });

  test("a segment that was not whole is skipped up to its Sync", async () => {
    const { bench, holder, app } = await crowded();
    app.push(client.parse("s1", "select 1"), client.flush());
    await settled();
    bench.clock.advance(5_000);
    const refused = app.answers();

    const skipped = await app.send(
      client.bind("", "s1"),
      client.execute(""),
      client.query("select 1"),
    );
    const synced = await app.send(client.sync());
    await holder.send(client.query("commit"));

    expect([refused, skipped, synced]).toEqual([["E 57014 query_wait_timeout"], [], ["Z I"]]);
    expect(await app.send(client.query("select 1"))).toEqual(ROW);
  });

  test("the statements of a refused segment are as they were before it", async () => {
    const { bench, holder, app } = await crowded({ defaultPoolSize: 1 });
    await holder.send(client.query("commit"));
    await app.send(client.parse("old", "select 1"), client.sync());
    await holder.send(client.query("begin"));
    app.push(
      client.closeStatement("old"),
      client.parse("old", "select 2"),
      client.parse("new", "select 3"),
      client.sync(),
    );
    await settled();
    bench.clock.advance(5_000);
    await holder.send(client.query("commit"));
    app.answers();

    expect(await app.send(client.run("old"))).toEqual(["2", "D 1", "C SELECT 1", "Z I"]);
    expect(await app.send(client.run("new"))).toEqual([
      'E 26000 prepared statement "new" does not exist',
      "Z I",
    ]);
  });

  test("a server that can't be opened is an error to the request, whatever its severity was", async () => {
    const bench = new RelayBench();
    bench.openError = new PoolError(
      "ERR_SERVER_LOGIN_REFUSED",
      "the database system is starting up",
      {
        sqlState: "57P03",
        severity: "FATAL",
      },
    );
    const app = bench.connect();

    expect(await app.send(client.query("select 1"))).toEqual([
      "E 57P03 the database system is starting up",
      "Z I",
    ]);
    expect(app.aborted).toBeUndefined();
  });

  test("a bug below becomes XX000 for the client, and is reported", async () => {
    const bench = new RelayBench();
    bench.cluster.route = () => Promise.reject(new TypeError("secret detail"));
    const app = bench.connect();

    expect(await app.send(client.query("select 1"))).toEqual(["E XX000 internal error", "Z I"]);
    expect(bench.bugs).toHaveLength(1);
  });

  test("the rest of a large message of a refused request is dropped", async () => {
    const { app, bench } = await crowded({ waitQueueMax: 1 });
    bench.connect().push(client.query("select 1"));

    const answers = await app.send(
      client.query(`insert into t values (1)${" ".repeat(200_000)}`),
      client.sync(),
    );

    expect(answers).toEqual(["E 53300 too many requests wait for a connection", "Z I", "Z I"]);
  });

  test("a large message that waits for a connection asks for one, and for no second", async () => {
    const { bench, holder, app } = await crowded();
    app.push(client.query(`insert into t values (1)${" ".repeat(200_000)}`));
    await settled();

    await holder.send(client.query("commit"));

    expect(app.answers()).toEqual(["C INSERT 0 1", "Z I"]);
    app.relay.leave(true);
    await settled();
    expect(bench.leased).toBe(0);
  });
});

describe("cancel while waiting", () => {
  test("a client that waits for a connection gets 57014 at once, and no server is asked", async () => {
    const { bench, holder, app } = await crowded();
    app.push(client.query("select 1"));
    await settled();

    app.relay.cancel();
    const answers = app.answers();
    await holder.send(client.query("commit"));

    expect(answers).toEqual(["E 57014 canceling statement due to user request", "Z I"]);
    expect(bench.cancels).toEqual([]);
    expect(bench.backend.received).toEqual(["Q begin", "Q commit"]);
    expect(await app.send(client.query("select 1"))).toEqual(ROW);
  });
});

describe("a lost connection", () => {
  async function serving(
    ...parts: readonly Uint8Array[]
  ): Promise<{ bench: RelayBench; app: BenchClient }> {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("select 1"));
    bench.backend.hold();
    app.push(...parts);
    await settled();
    return { bench, app };
  }

  test("outside a transaction it costs one error for each request owed, and the session goes on", async () => {
    const { bench, app } = await serving(
      client.query("insert into t values (1)"),
      client.unnamed("select 2"),
    );

    bench.backend.break();
    await settled();
    const answers = app.answers();

    expect(answers).toEqual([LOST, "Z I", LOST, "Z I"]);
    expect({ leased: bench.leased, lost: bench.counters.lostBackends }).toEqual({
      leased: 0,
      lost: 1,
    });
    expect(await app.send(client.query("select 1"))).toEqual(ROW);
  });

  test("a request that has had its error gets no second one", async () => {
    const { bench, app } = await serving(client.query("select 1/0"), client.query("select 2"));
    bench.backend.send(server.error("22012", "division by zero"));
    await settled();

    bench.backend.break();
    await settled();

    expect(app.answers()).toEqual(["E 22012 division by zero", "Z I", LOST, "Z I"]);
  });

  test("a failed segment whose Sync has not been sent gets no second error either", async () => {
    const { bench, app } = await serving(client.parse("", "selec"), client.flush());
    bench.backend.release();
    await settled();
    app.answers();
    // The text that does not parse keeps the session on its connection, so that this is the end of it.
    bench.backend.break();
    await settled();

    expect(app.answers()).toEqual([]);
    expect(app.aborted).toEqual({ error: [LOST.replace("E ", "E FATAL ")] });
  });

  test("what the client goes on sending of its segment is skipped", async () => {
    const { bench, app } = await serving(
      client.parse("s1", "insert into t values (1)"),
      client.flush(),
    );

    bench.backend.break();
    await settled();
    const lost = app.answers();
    const skipped = await app.send(client.bind("", "s1"), client.execute(""));
    const synced = await app.send(client.sync());

    expect([lost, skipped, synced]).toEqual([[LOST], [], ["Z I"]]);
    expect(await app.send(client.run("s1"))).toEqual([
      'E 26000 prepared statement "s1" does not exist',
      "Z I",
    ]);
  });

  test("inside a transaction it is FATAL", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("begin"));

    bench.backend.break();
    await settled();

    expect(app.aborted).toEqual({ error: [LOST.replace("E ", "E FATAL ")] });
    expect(bench.leased).toBe(0);
  });

  test("with a BEGIN on its way it is FATAL too: what follows must not run outside the block", async () => {
    const { bench, app } = await serving(client.query("begin"));

    bench.backend.break();
    await settled();

    expect(app.aborted).toEqual({ error: [LOST.replace("E ", "E FATAL ")] });
  });

  test("for a pinned session it is FATAL", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("listen jobs"));

    bench.backend.end();
    await settled();

    expect(app.aborted).toEqual({ error: [LOST.replace("E ", "E FATAL ")] });
  });

  test("inside a message that the client has a part of, nothing can be said", async () => {
    const { bench, app } = await serving(client.query("select * from generate_series(1, 9)"));
    const row = server.dataRow("x".repeat(100));
    bench.backend.send(server.rowDescription("c"), row.subarray(0, 50));
    await settled();

    bench.backend.break();
    await settled();

    expect(app.answers().at(-1)).toBe("partial");
    expect(app.aborted).toEqual({ error: [] });
  });

  test("a server that is shut down is told of once, in its own words", async () => {
    const { bench, app } = await serving(client.query("select 2"));

    bench.backend.send(
      server.error("57P01", "terminating connection due to administrator command", "FATAL"),
    );
    bench.backend.end();
    await settled();

    expect(app.answers()).toEqual([
      "E 57P01 terminating connection due to administrator command",
      "Z I",
    ]);
    expect(bench.counters.lostBackends).toBe(1);
  });

  test("a server that says its farewell to an idle connection is not lent again", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("select 1"));

    bench.backend.send(server.error("57P01", "terminating connection", "FATAL"));
    await settled();

    expect(await app.send(client.query("select 1"))).toEqual(ROW);
    expect(bench.backends).toHaveLength(2);
  });

  test("rows that came in one chunk with the server's last words are forwarded first", async () => {
    const { bench, app } = await serving(client.query("select * from generate_series(1, 9)"));

    bench.backend.send(
      server.rowDescription("c"),
      server.dataRow("1"),
      server.error("57P01", "terminating connection", "FATAL"),
    );
    await settled();

    expect(app.answers()).toEqual(["T", "D 1", "E 57P01 terminating connection", "Z I"]);
  });

  test("a server that breaks the protocol is left, with 08P01 for who it served", async () => {
    const { bench, app } = await serving(client.query("select 2"));

    bench.backend.send(server.rowDescription("c"), server.bindComplete());
    await settled();

    expect(app.answers()).toEqual(["T", "E 08P01 unexpected message 2 from server", "Z I"]);
    expect(bench.backend.hasClosed).toBe(true);
  });

  test("a replica that dies costs the read that ran there, and what waited behind it goes on", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();
    await app.send(client.query("select 1"));
    bench.backend.hold();
    app.push(client.query("select 2"), client.query("insert into t values (1)"));
    await settled();

    bench.backend.break();
    await settled();

    expect(app.answers()).toEqual([LOST, "Z I", "C INSERT 0 1", "Z I"]);
  });

  test("a statement refused by us behind a lost one is answered too", async () => {
    const bench = new RelayBench({ poolMode: "statement" });
    const app = bench.connect();
    await app.send(client.query("select 1"));
    bench.backend.hold();
    app.push(client.query("insert into t values (1)"), client.query("begin"));
    await settled();

    bench.backend.break();
    await settled();

    expect(app.answers()).toEqual([LOST, "Z I", LOST, "Z I"]);
  });

  test("the rest of a large message is dropped, and the session goes on", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "insert into t values (1)"), client.sync());
    const bind = client.bind("", "s1", ["x".repeat(200_000)]);
    app.push(bind.subarray(0, 100_000));
    await settled();

    bench.backend.break();
    await settled();
    const answers = await app.send(bind.subarray(100_000), client.execute(""), client.sync());

    expect(answers).toEqual([LOST, "Z I"]);
    expect(await app.send(client.query("select 1"))).toEqual(ROW);
  });
});
