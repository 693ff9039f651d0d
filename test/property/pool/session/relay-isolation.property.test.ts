// Laws under faults: whatever clients send, and whenever connections break, clients leave or cancel, no client reads another's answer, each connection
// comes back or is closed, and nothing throws or waits for ever.
import { beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { concatBytes, writeInt32 } from "#pool/wire/message-types.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, splitFrames } from "#test/support/wire-frames.ts";
import { type BenchClient, RelayBench } from "../../../unit/pool/session/relay-bench.ts";

beforeAll(loadStatementParser);

const CLIENTS = 3;

/** What a client does next. `n` tells whose rows its statements give. */
type Act = (bench: RelayBench, app: BenchClient, n: number) => void;

function sends(make: (n: number) => Uint8Array): Act {
  return (_, app, n) => app.push(make(n));
}

const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(sends((n) => client.query(`select ${n}`))) },
  { weight: 4, arbitrary: fc.constant(sends((n) => client.unnamed(`select ${n}`))) },
  {
    weight: 4,
    arbitrary: fc.constant(
      sends((n) =>
        concatBytes([
          client.closeStatement("s"),
          client.parse("s", `select ${n}`),
          client.run("s"),
        ]),
      ),
    ),
  },
  { weight: 3, arbitrary: fc.constant(sends(() => client.run("s"))) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom("begin", "commit", "rollback", "select 1/0", "set work_mem = '1MB'", "selec")
      .map((text) => sends(() => client.query(text))),
  },
  // No Sync behind it.
  {
    weight: 2,
    arbitrary: fc.constant(
      sends((n) => concatBytes([client.parse("", `select ${n}`), client.flush()])),
    ),
  },
  { weight: 1, arbitrary: fc.constant(sends(() => client.sync())) },
  {
    weight: 1,
    arbitrary: fc.constant(
      sends(() => concatBytes([client.query("copy t from stdin"), client.copyData("1\n")])),
    ),
  },
  { weight: 1, arbitrary: fc.constant(sends(() => client.copyDone())) },
  // The half of a large message.
  {
    weight: 1,
    arbitrary: fc.constant(sends(() => client.query(" ".repeat(70_000)).subarray(0, 66_000))),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom(..."Q P B D E C S H F d c f p".split(" ")),
        fc.uint8Array({ maxLength: 20 }),
      )
      .map(([type, body]) => sends(() => frameOf(type, body))),
  },
  { weight: 1, arbitrary: fc.constant<Act>((_, app) => app.relay.cancel()) },
  { weight: 1, arbitrary: fc.constant<Act>((_, app) => app.relay.leave(true)) },
  { weight: 1, arbitrary: fc.constant<Act>((_, app) => app.relay.leave(false)) },
  { weight: 1, arbitrary: fc.constant<Act>((_, app) => app.relay.wantPosition(() => {})) },
  { weight: 2, arbitrary: fc.constant<Act>((bench) => bench.backends.at(-1)?.hold()) },
  { weight: 2, arbitrary: fc.constant<Act>((bench) => bench.backends.at(-1)?.release()) },
  { weight: 1, arbitrary: fc.constant<Act>((bench) => bench.backends.at(-1)?.release(20)) },
  { weight: 1, arbitrary: fc.constant<Act>((bench) => bench.backends.at(-1)?.break()) },
  { weight: 1, arbitrary: fc.constant<Act>((bench) => bench.backends.at(-1)?.end()) },
  { weight: 1, arbitrary: fc.constant<Act>((bench) => bench.clock.advance(3_000)) },
  {
    weight: 1,
    arbitrary: fc.constant<Act>((bench) => {
      for (const { resolve } of bench.cancels) resolve();
    }),
  },
);

function frameOf(type: string, body: Uint8Array): Uint8Array {
  const head = new Uint8Array(5);
  head[0] = type.charCodeAt(0);
  writeInt32(head, 1, body.length + 4);
  return concatBytes([head, body]);
}

const schedule = fc.record({
  steps: fc.array(fc.tuple(fc.nat(CLIENTS - 1), acts, fc.boolean()), { maxLength: 40 }),
  isTrusted: fc.boolean(),
  hasReplica: fc.boolean(),
  poolMode: fc.constantFrom("transaction" as const, "session" as const, "statement" as const),
  defaultPoolSize: fc.constantFrom(1, 2),
});

test("clients are kept apart, and connections come back, whatever breaks", async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async ({ steps, hasReplica, ...profile }) => {
      const bench = new RelayBench(profile);
      bench.cluster.hasReplica = hasReplica;
      const apps = Array.from({ length: CLIENTS }, () => bench.connect());

      for (const [who, act, isResting] of steps) {
        const app = apps[who];
        if (app !== undefined) act(bench, app, 100 + who);
        if (isResting) await settled();
      }
      await settled();
      for (const app of apps) app.relay.leave(false);
      for (const backend of bench.backends) backend.release();
      await settled();
      await bench.deliverCancels();
      // Whatever still does not answer is given up at its deadline.
      for (let i = 0; i < 4; i++) {
        bench.clock.advance(10_000);
        await settled();
      }

      const foreign = apps.flatMap((app, who) => foreignRows(app.bytes, 100 + who));
      expect({ foreign, leased: bench.leased, bugs: bench.bugs }).toEqual({
        foreign: [],
        leased: 0,
        bugs: [],
      });
    }),
    { numRuns: 300 },
  );
});

/** Rows that are neither the client's own number nor one of those that everybody asks for. */
function foreignRows(bytes: Uint8Array, own: number): string[] {
  return splitFrames(bytes)
    .filter(({ type }) => type === "D")
    .map(({ bytes: frame }) => new TextDecoder().decode(frame.subarray(11)))
    .filter((row) => row !== `${own}`);
}
