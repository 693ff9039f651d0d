// Prepared statements that follow a client from server to server: names, presence, pipelines, eviction.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client } from "#test/support/wire-frames.ts";
import { RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const ANSWER = ["2", "D 1", "C SELECT 1", "Z I"];

describe("named statements", () => {
  test("a client's name never reaches a server, and equal texts of two clients are one statement there", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();

    const first = await app.send(client.parse("_pg3_0", "select 1"), client.sync());
    const second = await other.send(client.parse("_pg3_0", "select 1"), client.sync());

    expect([first, second]).toEqual([
      ["1", "Z I"],
      ["1", "Z I"],
    ]);
    expect(bench.backend.received).toEqual(["P wg_1 select 1", "S", "S"]);
  });

  test("one name with two texts collides with nobody", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());
    await other.send(client.parse("s1", "select 2"), client.sync());

    expect(await app.send(client.run("s1"))).toEqual(["2", "D 1", "C SELECT 1", "Z I"]);
    expect(await other.send(client.run("s1"))).toEqual(["2", "D 2", "C SELECT 1", "Z I"]);
  });

  test("on a server that does not have it, it is prepared without the client noticing", async () => {
    const bench = new RelayBench({ defaultPoolSize: 2 });
    const app = bench.connect();
    const holder = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());
    await holder.send(client.query("begin"));

    const answers = await app.send(client.describeStatement("s1"), client.run("s1"));

    expect(answers).toEqual(["t", "T", ...ANSWER]);
    expect(bench.backends[1]?.received).toEqual([
      "P wg_1 select 1",
      "D S wg_1",
      'B "" wg_1',
      'E ""',
      "S",
    ]);
  });

  test("Close is answered, and the statement stays on the server for the next client", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());

    const closed = await app.send(client.closeStatement("s1"), client.sync());
    const missing = await app.send(client.run("s1"));
    await app.send(client.parse("s1", "select 1"), client.run("s1"));

    expect(closed).toEqual(["3", "Z I"]);
    expect(missing).toEqual(['E 26000 prepared statement "s1" does not exist', "Z I"]);
    expect(bench.backend.model.statementNames).toEqual(["wg_1"]);
    expect(bench.backend.received.filter((line) => line.startsWith("P"))).toEqual([
      "P wg_1 select 1",
    ]);
  });

  test("closing a name that nothing has is no error", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    expect(await app.send(client.closeStatement("nothing"), client.sync())).toEqual(["3", "Z I"]);
  });

  test("a second Parse of a name gives 42P05, and the session goes on", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());

    const answers = await app.send(
      client.parse("s1", "select 1"),
      client.bind("", "s1"),
      client.sync(),
      client.run("s1"),
    );

    expect(answers).toEqual(['E 42P05 prepared statement "s1" already exists', "Z I", ...ANSWER]);
  });

  test("a name in another script than ASCII is quoted back as it was sent", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("größe", "select 1"), client.sync());

    expect(await app.send(client.parse("größe", "select 1"), client.sync())).toEqual([
      'E 42P05 prepared statement "größe" already exists',
      "Z I",
    ]);
  });

  test("names of ours mean nothing to a client", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());

    expect(await other.send(client.run("wg_1"))).toEqual([
      'E 26000 prepared statement "wg_1" does not exist',
      "Z I",
    ]);
    expect(await other.send(client.run("_walgate_lsn"))).toEqual([
      'E 26000 prepared statement "_walgate_lsn" does not exist',
      "Z I",
    ]);
  });

  test("a Parse that fails leaves the name free", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const failed = await app.send(client.parse("s1", "selec"), client.run("s1"));
    const again = await app.send(client.parse("s1", "select 1"), client.run("s1"));

    expect(failed).toEqual(["E 42601 syntax error", "Z I"]);
    expect(again).toEqual(["1", ...ANSWER]);
    expect(bench.registry.size).toBe(2);
  });

  test("in a failed transaction the server itself refuses a Parse, though it has the statement", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await other.send(client.parse("s1", "select 1"), client.sync());
    await app.send(client.query("begin"), client.query("select 1/0"));

    expect(await app.send(client.parse("s1", "select 1"), client.sync())).toEqual([
      "E 25P02 current transaction is aborted",
      "Z E",
    ]);
  });
});

describe("pipelines", () => {
  test("a Bind in the segment of its Parse waits for nothing", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("select 1"));
    bench.backend.hold();

    app.push(
      client.parse("s1", "select 1"),
      client.bind("", "s1"),
      client.execute(""),
      client.sync(),
    );
    await settled();

    expect(bench.backend.received.slice(1)).toEqual(["P wg_1 select 1", 'B "" wg_1', 'E ""', "S"]);
  });

  test("a Bind in a later segment waits for the Parse, for it may have been skipped", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("select 1"));
    bench.backend.hold();

    app.push(
      client.parse("", "selec"),
      client.parse("s1", "insert into t values (1)"),
      client.sync(),
    );
    app.push(client.run("s1"));
    await settled();
    const early = bench.backend.received.filter((line) => line.startsWith("B"));
    bench.backend.release();
    await settled();

    expect(early).toEqual([]);
    expect(app.answers()).toEqual([
      "E 42601 syntax error",
      "Z I",
      'E 26000 prepared statement "s1" does not exist',
      "Z I",
    ]);
  });

  test("a Close that was skipped leaves the statement", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());

    await app.send(client.bind("", "nothing"), client.closeStatement("s1"), client.sync());

    expect(await app.send(client.run("s1"))).toEqual(ANSWER);
  });

  test("a hidden Parse that was skipped is made up for", async () => {
    const bench = new RelayBench({ defaultPoolSize: 2 });
    const app = bench.connect();
    const holder = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());
    await holder.send(client.query("begin"));

    const failed = await app.send(client.execute("nothing"), client.bind("", "s1"), client.sync());
    const answers = await app.send(client.run("s1"));

    expect(failed).toEqual(['E 34000 portal "nothing" does not exist', "Z I"]);
    expect(answers).toEqual(ANSWER);
  });

  test("a client that leaves before its Parse is answered leaves no wrong knowledge behind", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.query("select 1"));
    app.push(client.bind("", "nothing"), client.parse("s1", "select 1"), client.flush());

    app.relay.leave(false);
    await settled();
    await bench.deliverCancels();
    const other = bench.connect();
    const answers = await other.send(client.parse("s9", "select 1"), client.run("s9"));

    expect(answers).toEqual(["1", ...ANSWER]);
    expect(bench.backends).toHaveLength(1);
  });
});

describe("eviction", () => {
  test("above max_prepared_statements the one unused for longest is closed, and comes back when it is used", async () => {
    const bench = new RelayBench({ maxPreparedStatements: 2 });
    const app = bench.connect();
    for (const n of [1, 2]) await app.send(client.parse(`s${n}`, `select ${n}`), client.sync());
    await app.send(client.run("s1"));

    await app.send(client.parse("s3", "select 3"), client.run("s3"));
    const names = bench.backend.model.statementNames;
    const answers = await app.send(client.run("s2"));

    expect(names).toEqual(["wg_1", "wg_3"]);
    expect(answers).toEqual(["2", "D 2", "C SELECT 1", "Z I"]);
  });

  test("a statement bound earlier in the segment runs, though it is closed behind", async () => {
    const bench = new RelayBench({ maxPreparedStatements: 1 });
    const app = bench.connect();

    const answers = await app.send(
      client.parse("s1", "select 1"),
      client.bind("", "s1"),
      client.parse("s2", "select 2"),
      client.execute(""),
      client.sync(),
    );

    expect(answers).toEqual(["1", "2", "1", "D 1", "C SELECT 1", "Z I"]);
  });
});
