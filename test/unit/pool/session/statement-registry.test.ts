// One name for each text, for as long as somebody uses it and some time longer.
import { expect, test } from "bun:test";
import { StatementRegistry } from "#pool/session/statement-registry.ts";

const encoder = new TextEncoder();

function tail(text: string, types = "\0\0"): Uint8Array {
  return encoder.encode(`${text}\0${types}`);
}

test("equal texts with equal types are one statement, others are others", () => {
  const registry = new StatementRegistry();

  const one = registry.acquire(tail("select $1"));
  const same = registry.acquire(tail("select $1"));
  const typed = registry.acquire(tail("select $1", "\0\u0001\0\0\0\u0017"));

  expect(same).toBe(one);
  expect(typed.id).not.toBe(one.id);
});

test("equal texts of different contexts are different statements, and so are texts that share a hash", () => {
  const registry = new StatementRegistry(1, () => 7);
  const chunk = tail("aabb");
  const first = registry.acquire(chunk, 0, 2, "one");
  const second = registry.acquire(chunk, 0, 2, "other");
  const third = registry.acquire(chunk, 2, 4, "one");

  expect(new Set([first, second, third]).size).toBe(3);
  expect(registry.acquire(chunk, 1, 2, "one").tail).toEqual(chunk.slice(1, 2));
  // Two leave, of which one may stay: the others are found as before.
  for (const statement of [first, second]) registry.release(statement);
  expect(registry.size).toBe(3);
  expect(registry.acquire(chunk, 2, 4, "one")).toBe(third);
  expect(registry.acquire(chunk, 0, 2, "other")).toBe(second);
  expect(registry.acquire(chunk, 0, 2, "one").id).toBe(5);
});

test("the kept text does not change with the bytes it was read from", () => {
  const registry = new StatementRegistry();
  const bytes = tail("select 1");

  const statement = registry.acquire(bytes);
  bytes.fill(0);

  expect(statement.tail).toEqual(tail("select 1"));
});

test("a text that nobody uses is kept up to the limit, the longest unused one goes first", () => {
  const registry = new StatementRegistry(2);
  const texts = ["select 1", "select 2", "select 3"];
  const statements = texts.map((text) => registry.acquire(tail(text)));

  for (const statement of statements) registry.release(statement);
  const kept = texts.map((text) => registry.acquire(tail(text)).id);

  expect(registry.size).toBe(3);
  expect(kept[0]).not.toBe(statements[0]?.id);
  expect(kept.slice(1)).toEqual(statements.slice(1).map(({ id }) => id));
});

test("a text that somebody still uses is never dropped", () => {
  const registry = new StatementRegistry(0);
  const statement = registry.acquire(tail("select 1"));
  registry.acquire(tail("select 1"));

  registry.release(statement);

  expect(registry.acquire(tail("select 1"))).toBe(statement);
});

test("texts that nobody uses are kept up to 16 MB in all, the longest unused leaving first", () => {
  const registry = new StatementRegistry();
  const large = (index: number): Uint8Array => tail(`${index}`.padEnd(1_048_573, "x"));
  for (let index = 0; index < 17; index++) registry.release(registry.acquire(large(index)));

  expect(registry.size).toBe(16);
  const kept = registry.acquire(large(16));
  expect(kept.id).toBe(17);
  expect(registry.acquire(large(0)).id).toBe(18);
});
