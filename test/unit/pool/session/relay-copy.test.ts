// COPY through a relay, in both protocols, with clients that wait and clients that don't.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const COPY = "copy t from stdin";
const START = [client.parse("", COPY), client.bind("", ""), client.execute("")];
const DATA = [client.copyData("1\n"), client.copyData("2\n")];

function connected(): { bench: RelayBench; app: BenchClient } {
  const bench = new RelayBench();
  return { bench, app: bench.connect() };
}

describe("COPY FROM STDIN", () => {
  test("by a Query, as psql sends it", async () => {
    const { bench, app } = connected();

    const begun = await app.send(client.query(COPY));
    const during = bench.leased;
    const ended = await app.send(...DATA, client.copyDone());

    expect([begun, ended]).toEqual([["G"], ["C COPY 2", "Z I"]]);
    expect([during, bench.leased]).toEqual([1, 0]);
    expect(bench.backend.model.copied).toEqual(["1\n", "2\n"]);
  });

  test("by the extended protocol with a Sync behind Execute, as libpq sends it", async () => {
    const { bench, app } = connected();

    const begun = await app.send(...START, client.sync());
    const ended = await app.send(...DATA, client.copyDone(), client.sync());

    expect([begun, ended]).toEqual([
      ["1", "2", "G"],
      ["C COPY 2", "Z I"],
    ]);
    expect(bench.leased).toBe(0);
  });

  test("with its ignored Sync answered by nothing, the connection is not free when the copy has ended", async () => {
    const { bench, app } = connected();
    await app.send(...START, client.sync());

    const ended = await app.send(client.copyDone());
    const leased = bench.leased;
    const synced = await app.send(client.sync());

    expect([ended, leased, synced, bench.leased]).toEqual([["C COPY 0"], 1, ["Z I"], 0]);
  });

  test("without waiting for CopyInResponse, all in one chunk", async () => {
    const { bench, app } = connected();

    const answers = await app.send(...START, ...DATA, client.copyDone(), client.sync());

    expect(answers).toEqual(["1", "2", "G", "C COPY 2", "Z I"]);
    expect(bench.leased).toBe(0);
  });

  test("without waiting, behind a Query and with the next one behind it", async () => {
    const { bench, app } = connected();

    const answers = await app.send(
      client.query(COPY),
      ...DATA,
      client.copyDone(),
      client.query("select 1"),
    );

    expect(answers).toEqual(["G", "C COPY 2", "Z I", "T", "D 1", "C SELECT 1", "Z I"]);
    expect(bench.leased).toBe(0);
  });

  test("a large CopyData is streamed", async () => {
    const { bench, app } = connected();
    await app.send(client.query(COPY));
    const row = "x".repeat(300_000);

    const answers = await app.send(client.copyData(row), client.copyDone());

    expect(answers).toEqual(["C COPY 1", "Z I"]);
    expect(bench.backend.model.copied).toEqual([row]);
  });

  test("CopyFail ends it with the server's error", async () => {
    const { bench, app } = connected();
    await app.send(client.query(COPY));

    expect(await app.send(client.copyFail("no more"))).toEqual([
      "E 57014 COPY from stdin failed",
      "Z I",
    ]);
    expect(bench.leased).toBe(0);
  });
});

describe("a copy that fails", () => {
  test("of a Query: what the client still sends of it reaches nobody, and the server goes back", async () => {
    const { bench, app } = connected();
    await app.send(client.query(COPY));
    const failed = await app.send(client.copyData("bad\n"));
    const leased = bench.leased;
    const received = bench.backend.received.length;

    const late = await app.send(...DATA, client.copyDone());
    const next = await app.send(client.query("select 1"));

    expect([failed, leased, late, next]).toEqual([
      ["E 22P02 invalid input syntax", "Z I"],
      0,
      [],
      ["T", "D 1", "C SELECT 1", "Z I"],
    ]);
    expect(bench.backend.received.slice(received)).toEqual(["Q select 1"]);
  });

  test("of the extended protocol: it is skipped up to the Sync, and the server goes back", async () => {
    const { bench, app } = connected();
    await app.send(...START, client.sync());
    const failed = await app.send(client.copyData("bad\n"));
    const leased = bench.leased;

    const late = await app.send(...DATA, client.copyDone(), client.sync());

    expect([failed, leased, late, bench.leased]).toEqual([
      ["E 22P02 invalid input syntax"],
      1,
      ["Z I"],
      0,
    ]);
  });

  test("before it begins: the data that came with it is dropped", async () => {
    const { bench, app } = connected();
    await app.send(client.query("begin"), client.query("select 1/0"));

    const answers = await app.send(client.query(COPY), ...DATA, client.copyDone());
    const after = await app.send(client.query("rollback"));

    expect([answers, after]).toEqual([
      ["E 25P02 current transaction is aborted", "Z E"],
      ["C ROLLBACK", "Z I"],
    ]);
    expect(bench.leased).toBe(0);
  });
});

describe("a client that leaves in a copy", () => {
  test.each([
    ["of a Query", [client.query(COPY)]],
    ["of the extended protocol", START],
    ["of the extended protocol with its Sync", [...START, client.sync()]],
  ])("%s: the copy fails, and the connection is fit for the next", async (_, parts) => {
    const { bench, app } = connected();
    await app.send(...parts, client.flush());
    await app.send(...DATA);

    app.relay.leave(false);
    await settled();
    await bench.deliverCancels();

    expect(bench.backend.received).toContain("f client disconnected");
    expect(bench.leased).toBe(0);
    expect(await bench.connect().send(client.query("select 1"))).toEqual([
      "T",
      "D 1",
      "C SELECT 1",
      "Z I",
    ]);
    expect(bench.backends).toHaveLength(1);
  });

  test.each([
    ["with its Sync", [...START, client.sync()]],
    ["without its Sync", [...START, client.flush()]],
  ])("before CopyInResponse has come, %s: the same", async (_, parts) => {
    const { bench, app } = connected();
    await app.send(client.query("select 1"));
    bench.backend.hold();
    app.push(...parts);
    await settled();

    app.relay.leave(false);
    bench.backend.release();
    await settled();
    await bench.deliverCancels();

    expect(bench.leased).toBe(0);
    expect(bench.backends).toHaveLength(1);
    expect(bench.backend.hasClosed).toBe(false);
  });

  test("inside a CopyData: its server session is closed", async () => {
    const { bench, app } = connected();
    await app.send(client.query(COPY));
    app.push(client.copyData("x".repeat(300_000)).subarray(0, 100_000));
    await settled();

    app.relay.leave(false);
    await settled();

    expect(bench.backend.hasClosed).toBe(true);
    expect(bench.leased).toBe(0);
  });
});

test("COPY TO STDOUT by both protocols", async () => {
  const { app } = connected();

  expect(await app.send(client.query("copy t to stdout"))).toEqual([
    "H",
    "d 1\n",
    "c",
    "C COPY 1",
    "Z I",
  ]);
  expect(await app.send(client.unnamed("copy t to stdout"))).toEqual([
    "1",
    "2",
    "n",
    "H",
    "d 1\n",
    "c",
    "C COPY 1",
    "Z I",
  ]);
});
