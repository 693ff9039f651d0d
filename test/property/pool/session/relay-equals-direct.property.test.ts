// Law: whatever pipelines clients send through the pool, torn however they are, each reads exactly what one server of its own would have said.
import { beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { settled } from "#test/support/fake-backend.ts";
import { ModelServer } from "#test/support/model-server.ts";
import { client, describeReplies } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "../../../unit/pool/session/relay-bench.ts";

beforeAll(loadStatementParser);

const text = fc.constantFrom(
  "select 1",
  "select * from generate_series(1, 5)",
  "insert into t values (1)",
  "select 1/0",
  "select * from nothing_here",
  "selec",
  "begin",
  "commit",
  "rollback",
  "set work_mem = '1MB'",
  "copy t to stdout",
  "",
);
/** Statements that a client parses under these names are the same text now and another then. */
const namedStatement = fc.constantFrom("s1", "s2", "s3");
const statementName = fc.oneof(
  { weight: 1, arbitrary: fc.constant("") },
  { weight: 3, arbitrary: namedStatement },
);
const portalName = fc.constantFrom("", "p1");

const extendedMessage = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(statementName, text).map(([name, sql]) => client.parse(name, sql)),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(portalName, namedStatement)
      .map(([portal, name]) => client.bind(portal, name)),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(portalName, fc.constantFrom(0, 2))
      .map(([portal, max]) => client.execute(portal, max)),
  },
  { weight: 1, arbitrary: namedStatement.map((name) => client.describeStatement(name)) },
  { weight: 1, arbitrary: portalName.map((name) => client.describePortal(name)) },
  { weight: 1, arbitrary: statementName.map((name) => client.closeStatement(name)) },
  { weight: 1, arbitrary: portalName.map((name) => client.closePortal(name)) },
  { weight: 1, arbitrary: fc.constant(client.flush()) },
);

const extendedSegment = fc
  .array(extendedMessage, { maxLength: 8 })
  .map((messages) => concatBytes([...messages, client.sync()]));

/** What drivers really send: it gets further than messages at random. */
const usualSegment = fc.tuple(statementName, text, fc.boolean()).map(([name, sql, isNew]) =>
  concatBytes([
    // An unnamed statement of an earlier segment is tested by itself: after a skipped Parse it is gone for us, and not for a server.
    ...(isNew || name === "" ? [client.closeStatement(name), client.parse(name, sql)] : []),
    client.run(name),
  ]),
);

const copyRows = fc.array(fc.constantFrom("1\n", "2\n", "bad\n"), { maxLength: 4 });
const copyEnd = fc.constantFrom(client.copyDone(), client.copyFail("no more"));
const copySegment = fc
  .tuple(copyRows, copyEnd, fc.constantFrom("simple", "extended", "extended with an early Sync"))
  .map(([rows, end, how]) => {
    const data = [...rows.map((row) => client.copyData(row)), end];
    if (how === "simple") return concatBytes([client.query("copy t from stdin"), ...data]);
    // Names of their own, so that nothing else begins a copy that no data follow.
    const start = [
      client.closeStatement("copy"),
      client.closePortal("copy"),
      client.parse("copy", "copy t from stdin"),
      client.bind("copy", "copy"),
      client.execute("copy"),
    ];
    const early = how === "extended" ? [] : [client.sync()];
    return concatBytes([...start, ...early, ...data, client.sync()]);
  });

const segment = fc.oneof(
  { weight: 3, arbitrary: extendedSegment },
  { weight: 4, arbitrary: usualSegment },
  { weight: 2, arbitrary: text.map((sql) => client.query(sql)) },
  { weight: 1, arbitrary: fc.tuple(text, text).map((texts) => client.query(texts.join(";"))) },
  { weight: 1, arbitrary: copySegment },
);

/** At the end no transaction keeps its connection from the others. */
const script = fc
  .array(segment, { minLength: 1, maxLength: 12 })
  .map((segments) => concatBytes([...segments, client.query("rollback")]));
/** Sizes of chunks, over and over; whole more often than not. */
const chunkSizes = fc.oneof(
  fc.constant([1_000_000]),
  fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 6 }),
);

function direct(bytes: Uint8Array): string[] {
  const answers: Uint8Array[] = [];
  const model = new ModelServer((reply) => answers.push(reply));
  model.receive(bytes);
  return describeReplies(concatBytes(answers));
}

/** A name that is taken is found by us before the server looks at the text: of two faults of one Parse, ours comes first. */
function withOurFault(expected: readonly string[], answers: readonly string[]): string[] {
  return expected.map((line, index) => {
    const ours = answers[index] ?? "";
    return line.startsWith("E ") && ours.startsWith("E 42P05") ? ours : line;
  });
}

class Sender {
  readonly app: BenchClient;
  readonly #bytes: Uint8Array;
  readonly #sizes: readonly number[];
  #offset = 0;
  #turn = 0;

  constructor(app: BenchClient, bytes: Uint8Array, sizes: readonly number[]) {
    this.app = app;
    this.#bytes = bytes;
    this.#sizes = sizes;
  }

  get isDone(): boolean {
    return this.#offset >= this.#bytes.length;
  }

  pushNext(): void {
    const size = this.#sizes[this.#turn++ % this.#sizes.length] ?? 1;
    this.app.push(this.#bytes.subarray(this.#offset, this.#offset + size));
    this.#offset += size;
  }
}

const setup = fc.record({
  scripts: fc.array(fc.tuple(script, chunkSizes), { minLength: 1, maxLength: 3 }),
  serverChunks: chunkSizes,
  isTrusted: fc.boolean(),
  hasReplica: fc.boolean(),
  defaultPoolSize: fc.constantFrom(1, 2),
  maxPreparedStatements: fc.constantFrom(1, 2, 200),
  /** Now and then everything comes to rest before the next chunk. */
  rests: fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
});

test("a client behind the pool reads what it would read from a server of its own", async () => {
  await fc.assert(
    fc.asyncProperty(setup, async (given) => {
      const { isTrusted, defaultPoolSize, maxPreparedStatements } = given;
      const bench = new RelayBench({ isTrusted, defaultPoolSize, maxPreparedStatements });
      bench.cluster.hasReplica = given.hasReplica;
      bench.socketOptions = { tear: (bytes) => tear(bytes, given.serverChunks) };
      const senders = given.scripts.map(
        ([bytes, sizes]) => new Sender(bench.connect(), bytes, sizes),
      );

      let turn = 0;
      while (senders.some((sender) => !sender.isDone)) {
        for (const sender of senders) if (!sender.isDone) sender.pushNext();
        if (given.rests[turn++ % given.rests.length] === true) await settled();
      }
      // Whoever has had its answers and keeps its connection makes room by leaving.
      let staying = senders.map(({ app }) => app);
      while (staying.length > 0) {
        await settled();
        const leaving = staying.filter((app) => !app.isSuspended);
        expect(leaving).not.toEqual([]);
        for (const app of leaving) app.relay.leave(true);
        staying = staying.filter((app) => app.isSuspended);
      }
      await settled();

      for (const [index, { app }] of senders.entries()) {
        const answers = app.answers();
        const expected = direct(given.scripts[index]?.[0] ?? new Uint8Array(0));
        expect(answers).toEqual(withOurFault(expected, answers));
      }
      expect({ leased: bench.leased, bugs: bench.bugs }).toEqual({ leased: 0, bugs: [] });
    }),
    { numRuns: 150 },
  );
});

function tear(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let turn = 0;
  for (let at = 0; at < bytes.length;) {
    const size = sizes[turn++ % sizes.length] ?? 1;
    parts.push(bytes.slice(at, at + size));
    at += size;
  }
  return parts;
}
