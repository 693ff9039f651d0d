// Laws: however a server's bytes are torn, the client gets the same ones and the connection learns the same; and no bytes make the reader throw.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Expect, Fate, ReplyPlan } from "#pool/exchange/reply-plan.ts";
import { ReplyReader } from "#pool/exchange/reply-reader.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { server } from "#test/support/wire-frames.ts";

interface Exchange {
  readonly expect: (plan: ReplyPlan) => void;
  readonly reply: Uint8Array;
}

const fate = fc.constantFrom(Fate.FORWARD, Fate.HIDE_SUCCESS, Fate.HIDE_ALL);
const noise = fc.constantFrom(
  new Uint8Array(0),
  server.notice("n".repeat(20)),
  server.parameterStatus("TimeZone", "UTC"),
  server.notification("jobs", "payload"),
);
const rows = fc
  .array(fc.string({ maxLength: 30 }), { maxLength: 5 })
  .map((values) => values.map((value) => server.dataRow(value)));

/** Messages of one kind with what a server answers to them. */
const exchange: fc.Arbitrary<Exchange> = fc.oneof(
  fc.tuple(fate, noise, rows).map(([hidden, extra, data]) => ({
    expect: (plan: ReplyPlan) => {
      plan.expect(Expect.BIND, hidden);
      plan.expect(Expect.EXECUTE, hidden);
      plan.expect(Expect.SYNC, hidden);
    },
    reply: concatBytes([
      server.bindComplete(),
      extra,
      ...data,
      server.commandComplete("SELECT 1"),
      server.ready("I"),
    ]),
  })),
  fc.tuple(fate, noise).map(([hidden, extra]) => ({
    expect: (plan: ReplyPlan) => {
      plan.answer(server.parseComplete());
      plan.expect(Expect.DESCRIBE, hidden);
      plan.answer(server.closeComplete());
      plan.expect(Expect.SYNC);
    },
    reply: concatBytes([
      server.parameterDescription(),
      server.rowDescription("a", "b"),
      extra,
      server.ready("T"),
    ]),
  })),
  fate.map((hidden) => ({
    expect: (plan: ReplyPlan) => {
      plan.expect(Expect.PARSE, hidden, { replacement: server.error("26000", "ours") });
      plan.expect(Expect.BIND);
      plan.answer(server.parseComplete());
      plan.expect(Expect.SYNC);
    },
    reply: concatBytes([server.error("42601", "syntax error"), server.ready("E")]),
  })),
  fc.tuple(rows, noise).map(([data, extra]) => ({
    expect: (plan: ReplyPlan) => plan.expect(Expect.QUERY),
    reply: concatBytes([
      server.rowDescription("a"),
      ...data,
      server.commandComplete("SELECT 1"),
      extra,
      server.copyOut(),
      server.copyData("1\n"),
      server.copyDone(),
      server.commandComplete("COPY 1"),
      server.ready("I"),
    ]),
  })),
);

function run(
  exchanges: readonly Exchange[],
  chunks: readonly Uint8Array[],
): { readonly forwarded: string; readonly events: readonly string[]; readonly left: number } {
  const plan = new ReplyPlan();
  const forwarded: Uint8Array[] = [];
  const events: string[] = [];
  const note = (name: string) => (bytes: Uint8Array) =>
    events.push(`${name} ${Buffer.from(bytes).toString("hex")}`);
  const reader = new ReplyReader(plan, {
    readyForQuery: (status) => events.push(`ready ${status}`),
    parameterStatus: note("parameter"),
    commandComplete: (chunk, start, end) => note("complete")(chunk.subarray(start, end)),
    copyIn: () => events.push("copy in"),
    fatalError: note("fatal"),
    errorResponse: note("error"),
    violation: (reason) => events.push(reason),
  });
  reader.sink = { forward: (bytes) => forwarded.push(bytes.slice()) };
  for (const one of exchanges) one.expect(plan);
  reader.answerLocally();
  for (const chunk of chunks) reader.receive(chunk);
  return {
    forwarded: Buffer.from(concatBytes(forwarded)).toString("hex"),
    events,
    left: plan.length,
  };
}

function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let turn = 0;
  for (let at = 0; at < bytes.length;) {
    const size = sizes[turn++ % sizes.length] ?? 1;
    chunks.push(bytes.slice(at, at + size));
    at += size;
  }
  return chunks;
}

const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });

test("a reply torn anywhere is read as if it had come whole", () => {
  fc.assert(
    fc.property(
      fc.array(exchange, { minLength: 1, maxLength: 6 }),
      sizes,
      (exchanges, chunkSizes) => {
        const bytes = concatBytes(exchanges.map(({ reply }) => reply));

        const whole = run(exchanges, [bytes]);
        const torn = run(exchanges, cut(bytes, chunkSizes));

        expect(torn).toEqual(whole);
        expect(whole.left).toBe(0);
      },
    ),
  );
});

test("bytes at random are a violation or an answer, and never an exception", () => {
  fc.assert(
    fc.property(
      fc.array(exchange, { maxLength: 3 }),
      fc.uint8Array({ maxLength: 200 }),
      sizes,
      (exchanges, garbage, chunkSizes) => {
        const bytes = concatBytes([...exchanges.map(({ reply }) => reply), garbage]);

        expect(run(exchanges, cut(bytes, chunkSizes)).events).toBeArray();
      },
    ),
  );
});
