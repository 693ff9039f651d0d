// What a client is told when the connection that serves it is lost, and how it goes on.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, server } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const LOST = "E 08006 server closed the connection unexpectedly";
const ROW = ["T", "D 1", "C SELECT 1", "Z I"];

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

  test("nor does a segment that has failed and whose Sync was not answered", async () => {
    const { bench, app } = await serving(client.unnamed("select 1/0"), client.query("select 2"));
    bench.backend.send(
      server.parseComplete(),
      server.bindComplete(),
      server.rowDescription("c"),
      server.error("22012", "division by zero"),
    );
    await settled();
    app.answers();

    bench.backend.break();
    await settled();

    expect(app.answers()).toEqual(["Z I", LOST, "Z I"]);
  });

  test("a message that waited for an answer is read anew when there is none", async () => {
    const { bench, app } = await serving(
      client.parse("s1", "insert into t values (1)"),
      client.sync(),
      client.run("s1"),
    );

    bench.backend.break();
    await settled();

    expect(app.answers()).toEqual([
      LOST,
      "Z I",
      'E 26000 prepared statement "s1" does not exist',
      "Z I",
    ]);
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
