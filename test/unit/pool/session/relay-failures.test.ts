// What a client is told when no connection can be had.
import { beforeAll, describe, expect, test } from "bun:test";
import { PoolError } from "#pool/errors.ts";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

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
