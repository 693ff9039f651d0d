// What becomes of a connection whose client leaves, is cancelled, or both.
import { beforeAll, describe, expect, test } from "bun:test";
import { PoolError } from "#pool/errors.ts";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, server } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const ROW = ["T", "D 1", "C SELECT 1", "Z I"];

/** A client whose statement runs on. */
async function running(text = "select 2"): Promise<{ bench: RelayBench; app: BenchClient }> {
  const bench = new RelayBench();
  const app = bench.connect();
  await app.send(client.query("select 1"));
  bench.backend.hold();
  app.push(client.query(text));
  await settled();
  app.answers();
  return { bench, app };
}

describe("a client that leaves", () => {
  test("idle, it leaves nothing to do", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("select 1"));

    app.push(client.terminate());
    await settled();

    expect({ leased: bench.leased, received: bench.backend.received }).toEqual({
      leased: 0,
      received: ["Q select 1"],
    });
  });

  test("in a transaction, it is rolled back before the connection is lent again", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await app.send(client.query("begin"));
    other.push(client.query("select 1"));

    app.relay.leave(false);
    await settled();

    expect(bench.backend.received).toEqual(["Q begin", "Q ROLLBACK", "Q select 1"]);
    expect(other.answers()).toEqual(ROW);
  });

  test("with a statement running, it is cancelled first and then rolled back", async () => {
    const { bench, app } = await running("begin");
    bench.backend.release();
    await settled();
    bench.backend.hold();
    app.push(client.query("select 2"));
    await settled();

    app.relay.leave(false);
    await settled();
    const during = { cancels: bench.cancels.length, leased: bench.leased };
    bench.backend.discardHeld();
    bench.backend.send(server.error("57014", "canceling statement"), server.ready("E"));
    await settled();
    const before = bench.backend.received.at(-1);
    await bench.deliverCancels();

    expect(during).toEqual({ cancels: 1, leased: 1 });
    expect(before).toBe("Q select 2");
    expect(bench.backend.received.at(-1)).toBe("Q ROLLBACK");
    expect(bench.leased).toBe(0);
  });

  test("one that does not react to its cancel in time costs its connection, within the bound", async () => {
    const { bench, app } = await running();

    app.relay.leave(false);
    await bench.deliverCancels();
    bench.clock.advance(9_999);
    const before = bench.leased;
    bench.clock.advance(1);
    await settled();

    expect([before, bench.leased, bench.backend.hasClosed]).toEqual([1, 0, true]);
  });

  test("with a Terminate behind its pipeline, what it sent is carried out and nothing is cancelled", async () => {
    const { bench, app } = await running("insert into t values (1)");

    app.push(client.query("insert into t values (1)"), client.terminate());
    await settled();
    bench.backend.release();
    await settled();

    expect(bench.cancels).toEqual([]);
    expect(bench.backend.received.slice(1)).toEqual([
      "Q insert into t values (1)",
      "Q insert into t values (1)",
    ]);
    expect(bench.leased).toBe(0);
  });

  test.each([true, false])(
    "before its Sync (orderly: %p), nothing of the segment is committed by a Sync of ours",
    async (isOrderly) => {
      const bench = new RelayBench();
      const app = bench.connect();
      await app.send(
        client.parse("s1", "insert into t values (1)"),
        client.bind("", "s1"),
        client.execute(""),
        client.flush(),
      );

      app.relay.leave(isOrderly);
      await settled();

      // The Bind fails, and with it the implicit transaction.
      expect(bench.backend.received.slice(-3)).toEqual([
        "f client disconnected",
        'B "" _walgate_none',
        "S",
      ]);
      expect(bench.leased).toBe(0);
      expect(await bench.connect().send(client.query("select 1"))).toEqual(ROW);
    },
  );

  test("inside a large message, its server session is closed", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    app.push(client.query(`insert into t values (1)${" ".repeat(200_000)}`).subarray(0, 100_000));
    await settled();

    app.relay.leave(false);
    await settled();

    expect([bench.backend.hasClosed, bench.leased]).toEqual([true, 0]);
  });

  test("in the middle of a large row, the server is cancelled and the rest of the row goes nowhere", async () => {
    const { bench, app } = await running();
    const row = server.dataRow("x".repeat(1_000));
    bench.backend.discardHeld();
    bench.backend.send(server.rowDescription("c"), row.subarray(0, 500));
    await settled();
    app.answers();

    app.relay.leave(false);
    await bench.deliverCancels();
    bench.backend.send(row.subarray(500), server.error("57014", "canceling"), server.ready("I"));
    await settled();

    expect(app.answers()).toEqual([]);
    expect([bench.leased, bench.cancels.length]).toEqual([0, 1]);
    expect(await bench.connect().send(client.query("select 1"))).toEqual(ROW);
  });

  test("while it waits for a connection, its place in the queue is given up", async () => {
    const bench = new RelayBench();
    const holder = bench.connect();
    await holder.send(client.query("begin"));
    const app = bench.connect();
    const next = bench.connect();
    app.push(client.query("insert into t values (1)"));
    next.push(client.query("select 1"));

    app.relay.leave(false);
    await holder.send(client.query("commit"));

    expect(next.answers()).toEqual(ROW);
    expect(bench.backend.received).toEqual(["Q begin", "Q commit", "Q select 1"]);
  });

  test("from inside its own answer, as a door does that has seen too much of it", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const forward = app.forward.bind(app);
    app.forward = (bytes) => {
      forward(bytes);
      app.relay.leave(false);
    };

    await app.send(client.query("select 1"));
    await bench.deliverCancels();

    expect([bench.leased, bench.bugs]).toEqual([0, []]);
    expect(await bench.connect().send(client.query("select 1"))).toEqual(ROW);
  });

  test("a second time, nothing happens", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("begin"));

    app.relay.leave(false);
    app.relay.leave(true);
    app.push(client.query("select 1"));
    await settled();

    expect(bench.backend.received).toEqual(["Q begin", "Q ROLLBACK"]);
  });
});

describe("reset", () => {
  test("a pinned session's connection is cleaned by DISCARD ALL, of which its client sees nothing", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("set work_mem = '1MB'"));

    app.relay.leave(true);
    await settled();

    expect(bench.backend.received).toEqual(["Q set work_mem = '1MB'", "Q DISCARD ALL"]);
    expect(app.answers()).toEqual([]);
    expect(bench.leased).toBe(0);
  });

  test("an open transaction is rolled back first, for DISCARD ALL can't run inside one", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("listen jobs"), client.query("begin"));

    app.relay.leave(false);
    await settled();

    expect(bench.backend.received.slice(2)).toEqual(["Q ROLLBACK", "Q DISCARD ALL"]);
  });

  test("in session mode the reset query's statements are sent one by one", async () => {
    const bench = new RelayBench({
      poolMode: "session",
      serverResetQuery: "DEALLOCATE ALL; RESET work_mem;",
    });
    const app = bench.connect();
    await app.send(client.query("select 1"));

    app.relay.leave(true);
    await settled();

    expect(bench.backend.received).toEqual(["Q select 1", "Q DEALLOCATE ALL", "Q RESET work_mem"]);
    expect(bench.leased).toBe(0);
  });

  test("after a reset that may have undone them, the next client's parameters are put in force whatever they are", async () => {
    const bench = new RelayBench({ poolMode: "session", serverResetQuery: "RESET timezone" });
    const parameters = { fingerprint: "v", entries: new Map([["timezone", "vienna"]]) };
    const app = bench.connect({ parameters });
    await app.send(client.query("select 1"));
    app.relay.leave(true);
    await settled();

    await bench.connect({ parameters }).send(client.query("select 2"));

    expect(bench.backend.received.slice(2)).toEqual([
      "Q RESET timezone",
      "Q SELECT pg_catalog.set_config('timezone', E'vienna', false)",
      "Q select 2",
    ]);
  });

  test("a reset that fails costs the connection", async () => {
    const bench = new RelayBench({ poolMode: "session", serverResetQuery: "no such command" });
    const app = bench.connect();
    await app.send(client.query("select 1"));

    app.relay.leave(true);
    await settled();

    expect([bench.leased, bench.backend.hasClosed]).toEqual([0, true]);
  });

  test("a reset that is not answered costs the connection at the deadline", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("listen jobs"));
    bench.backend.hold();

    app.relay.leave(true);
    await settled();
    bench.clock.advance(9_999);
    const before = bench.leased;
    bench.clock.advance(1);
    await settled();

    expect([before, bench.leased, bench.backend.hasClosed]).toEqual([1, 0, true]);
  });
});

describe("cancel", () => {
  test("a cancel that is on its way keeps the connection from the next client until it has arrived", async () => {
    const { bench, app } = await running();
    const other = bench.connect();
    other.push(client.query("select 3"));

    app.relay.cancel();
    bench.backend.release();
    await settled();
    const answers = app.answers();
    const before = [...bench.backend.received];
    await bench.deliverCancels();

    expect(answers.at(-1)).toBe("Z I");
    expect(before).not.toContain("Q select 3");
    expect(other.answers()).toEqual(["T", "D 3", "C SELECT 1", "Z I"]);
  });

  test("one that can't be known to have arrived costs the connection once its client is done with it", async () => {
    const { bench, app } = await running();
    app.relay.cancel();
    bench.cancels[0]?.reject(
      new PoolError("ERR_CONNECT_TIMEOUT", "no answer", { sqlState: "08001" }),
    );
    await settled();

    bench.backend.release();
    await settled();

    expect(app.answers().at(-1)).toBe("Z I");
    expect([bench.leased, bench.backend.hasClosed, bench.bugs]).toEqual([0, true, []]);
    expect(await app.send(client.query("select 1"))).toEqual(ROW);
  });

  test("a session whose statement has ended has nothing to cancel", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("begin"));

    app.relay.cancel();

    expect(bench.cancels).toEqual([]);
  });

  test("a client that leaves while its cancel is on its way does not hand the connection on before", async () => {
    const { bench, app } = await running();
    app.relay.cancel();
    bench.backend.release();
    await settled();

    app.relay.leave(true);
    await settled();
    const before = bench.leased;
    await bench.deliverCancels();

    expect([before, bench.leased, bench.backend.hasClosed]).toEqual([1, 0, false]);
  });
});

test("notifications between answers reach a pinned client", async () => {
  const bench = new RelayBench();
  const app = bench.connect();
  await app.send(client.query("listen jobs"));

  bench.backend.send(server.notification("jobs", "1"));
  await settled();

  expect(app.answers()).toEqual(["A"]);
});
