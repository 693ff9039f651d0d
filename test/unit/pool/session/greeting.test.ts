// The parameter values that new clients are greeted with: asked of a server once, and refused where it refuses them.
import { beforeAll, expect, test } from "bun:test";
import { PoolError } from "#pool/errors.ts";
import { Greetings } from "#pool/session/greeting.ts";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, server } from "#test/support/wire-frames.ts";
import { RelayBench, parametersOf } from "./relay-bench.ts";

beforeAll(loadStatementParser);

test("a set of settings is tried on a server once, and its reported values are remembered", async () => {
  const bench = new RelayBench();
  const greetings = new Greetings(bench.environment);
  const identity = { ...bench.identity, parameters: parametersOf({ timezone: "vienna" }) };
  await bench.connect().send(client.query("select 1"));
  bench.backend.hold();
  const asked = greetings.get(identity);
  await settled();
  bench.backend.discardHeld();
  bench.backend.send(
    server.commandComplete("SELECT 1"),
    server.parameterStatus("TimeZone", "Europe/Vienna"),
    server.ready("I"),
  );

  const first = await asked;
  const second = await greetings.get(identity);

  expect(Object.fromEntries(first)).toEqual({ TimeZone: "Europe/Vienna" });
  expect(second).toBe(first);
  expect(bench.backend.received).toHaveLength(2);
  expect(bench.leased).toBe(0);
});

test("a setting that the server refuses is refused with its SQLSTATE, and the connection stays what it was", async () => {
  const bench = new RelayBench();
  const greetings = new Greetings(bench.environment);
  const parameters = parametersOf({ timezone: "refused" });

  const refused = await greetings
    .get({ ...bench.identity, parameters })
    .catch((error: unknown) => error);

  expect(refused).toBeInstanceOf(PoolError);
  expect(refused).toMatchObject({ sqlState: "22023" });
  expect(await bench.connect().send(client.query("select 1"))).toEqual([
    "T",
    "D 1",
    "C SELECT 1",
    "Z I",
  ]);
  expect(bench.backends).toHaveLength(1);
  expect(bench.backend.received.at(-1)).toBe("Q select 1");
});

test("a server that does not answer is given up at the deadline", async () => {
  const bench = new RelayBench();
  const greetings = new Greetings(bench.environment);
  await bench.connect().send(client.query("select 1"));
  bench.backend.hold();
  const parameters = parametersOf({ timezone: "vienna" });
  const asked = greetings.get({ ...bench.identity, parameters }).catch((error: unknown) => error);
  await settled();

  bench.clock.advance(10_000);

  expect(await asked).toMatchObject({ sqlState: "57014" });
  expect(bench.leased).toBe(0);
});

test("settings that are in force already cost nothing, and the empty set needs no statement", async () => {
  const bench = new RelayBench();
  const greetings = new Greetings(bench.environment);

  await greetings.get(bench.identity);

  expect(bench.backend.received).toEqual([]);
  expect(bench.leased).toBe(0);
});
