// What a client's profile and its startup parameters change for it.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { client } from "#test/support/wire-frames.ts";
import { RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

describe("startup parameters", () => {
  const VIENNA = { fingerprint: "v", entries: new Map([["timezone", "vienna"]]) };

  test("they are in force before the client's first message, and their answers are hidden", async () => {
    const bench = new RelayBench();
    const app = bench.connect({ parameters: VIENNA });

    const answers = await app.send(client.query("select 1"));

    expect(answers).toEqual(["T", "D 1", "C SELECT 1", "Z I"]);
    expect(bench.backend.received).toEqual([
      "Q SELECT pg_catalog.set_config('timezone', E'vienna', false)",
      "Q select 1",
    ]);
  });

  test("they are not sent again where they are in force, and the next client's replace them", async () => {
    const bench = new RelayBench();
    const app = bench.connect({ parameters: VIENNA });
    const other = bench.connect();

    await app.send(client.query("select 1"));
    await app.send(client.query("select 2"));
    await other.send(client.query("select 3"));

    expect(bench.backend.received).toEqual([
      "Q SELECT pg_catalog.set_config('timezone', E'vienna', false)",
      "Q select 1",
      "Q select 2",
      "Q RESET ALL",
      "Q select 3",
    ]);
  });

  test("after the client's own DISCARD ALL they are put in force again", async () => {
    const bench = new RelayBench();
    const app = bench.connect({ parameters: VIENNA });

    await app.send(client.query("discard all"));
    await app.send(client.query("select 1"));

    expect(bench.backend.received.slice(1)).toEqual([
      "Q discard all",
      "Q SELECT pg_catalog.set_config('timezone', E'vienna', false)",
      "Q select 1",
    ]);
  });

  test("a server that refuses them is left, and the client's statement is not run", async () => {
    const bench = new RelayBench();
    const refused = { fingerprint: "r", entries: new Map([["timezone", "refused"]]) };
    const app = bench.connect({ parameters: refused });

    const answers = await app.send(client.query("insert into t values (1)"));

    expect(answers).toEqual(["E 08006 the server refused the session's parameters", "Z I"]);
    expect(bench.leased).toBe(0);
    expect(bench.backend.hasClosed).toBe(true);
  });
});

describe("statement mode", () => {
  test("a transaction block is refused in place, and no server hears of it", async () => {
    const bench = new RelayBench({ poolMode: "statement" });
    const app = bench.connect();

    const answers = await app.send(
      client.query("begin"),
      client.query("select 1"),
      client.query("commit"),
    );

    expect(answers).toEqual([
      "E 0A000 transaction blocks are not allowed in statement pooling mode",
      "Z I",
      "T",
      "D 1",
      "C SELECT 1",
      "Z I",
      "E 0A000 transaction blocks are not allowed in statement pooling mode",
      "Z I",
    ]);
    expect(bench.backend.received).toEqual(["Q select 1"]);
  });

  test("an extended one is refused, and the rest of its segment skipped", async () => {
    const bench = new RelayBench({ poolMode: "statement" });
    const app = bench.connect();

    const answers = await app.send(client.unnamed("begin"), client.unnamed("select 1"));

    expect(answers).toEqual([
      "E 0A000 transaction blocks are not allowed in statement pooling mode",
      "Z I",
      "1",
      "2",
      "T",
      "D 1",
      "C SELECT 1",
      "Z I",
    ]);
  });

  test("a large Query is refused, and none of it reaches a server", async () => {
    const bench = new RelayBench({ poolMode: "statement" });
    const app = bench.connect();

    const answers = await app.send(
      client.query(`begin${" ".repeat(70_000)}`),
      client.query("select 1"),
    );

    expect(answers.slice(1)).toEqual(["Z I", "T", "D 1", "C SELECT 1", "Z I"]);
    expect(bench.backend.received).toEqual(["Q select 1"]);
  });
});
