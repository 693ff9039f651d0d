// An exchange with the real relay and pool below it, and a model of PostgreSQL behind a socket in memory.
import { beforeAll, describe, expect, test } from "bun:test";
import { QueryExchange } from "#gateway/session/query-exchange.ts";
import { ResultShapes } from "#gateway/session/result-shape.ts";
import { SharedTimer } from "#gateway/session/shared-timer.ts";
import { TURN_MS } from "#gateway/session/turn.ts";
import {
  StatementClassifier,
  type TextFacts,
  loadStatementParser,
} from "#pool/sql/statement-classifier.ts";
import { encodeStatement } from "#pool/wire/statement-messages.ts";
import { settled } from "#test/support/fake-backend.ts";
import type { FakeClock } from "#test/support/fake-clock.ts";
import { RelayBench } from "#test/unit/pool/session/relay-bench.ts";

beforeAll(loadStatementParser);

/** Takes its time for each text, as the real one does for long ones. */
class SlowClassifier extends StatementClassifier {
  readonly classified: string[] = [];
  readonly #clock: FakeClock;
  readonly #textMs: number;

  constructor(clock: FakeClock, textMs: number) {
    super();
    this.#clock = clock;
    this.#textMs = textMs;
  }

  override read(source: Uint8Array, start: number, end: number): TextFacts {
    this.classified.push(Buffer.from(source.subarray(start, end)).toString());
    this.#clock.advance(this.#textMs);
    return super.read(source, start, end);
  }
}

const RAW = { isArray: true, isRawText: true };
const WATCH_MS = 10;

function started(texts: readonly string[], textMs = 0) {
  const bench = new RelayBench();
  const classifier = new SlowClassifier(bench.clock, textMs);
  const client = new AbortController();
  let signalsAsked = 0;
  const exchange = new QueryExchange({
    environment: { ...bench.environment, classifier },
    identity: bench.identity,
    positions: [],
    client: {
      get signal() {
        signalsAsked++;
        return client.signal;
      },
    },
    clientWatch: new SharedTimer(bench.clock, WATCH_MS),
    frameBytesMax: 1_000_000,
    responseBytesMax: 1_000_000,
    shapes: new ResultShapes({ head: () => "[", tail: (command) => `]${command}` }),
    formats: texts.map(() => RAW),
    opening: "",
  });
  const answer = exchange.run([texts.map((text) => encodeStatement({ text, params: [] }))]);
  return { bench, classifier, client, answer, signalsAsked: () => signalsAsked };
}

describe("a batch", () => {
  const TEXTS = Array.from({ length: 20 }, (_, index) => `select ${index}`);

  test("whose texts take long to read is read in turns, in order and without loss", async () => {
    const { bench, classifier, answer } = started(TEXTS, TURN_MS / 2);
    const readByTurn: number[] = [];
    const progress = { isAnswered: false };
    const answered = answer.then((result) => {
      progress.isAnswered = true;
      return result;
    });

    while (!progress.isAnswered) {
      readByTurn.push(classifier.classified.length);
      bench.clock.advance(0);
      await settled();
    }
    const { results, error } = await answered;

    expect(classifier.classified).toEqual(TEXTS);
    expect({ count: results.length, error }).toEqual({ count: TEXTS.length, error: undefined });
    // Two texts fill a turn.
    expect(readByTurn.slice(0, 10)).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
    expect(bench.leased).toBe(0);
  });

  test("that is quick to read is read at once", async () => {
    const { classifier, answer } = started(TEXTS);

    expect(classifier.classified).toEqual(TEXTS);
    expect((await answer).results).toHaveLength(TEXTS.length);
  });

  test("whose client goes between two turns is read no further", async () => {
    const { bench, classifier, client, answer } = started(TEXTS, TURN_MS / 2);
    await settled();
    // The watch.
    bench.clock.advance(WATCH_MS);
    const read = classifier.classified.length;

    client.abort();
    await settled();
    bench.clock.advance(TURN_MS);
    await settled();

    expect((await answer).error?.code).toBe("57014");
    expect(classifier.classified.length).toBeLessThan(TEXTS.length);
    expect(classifier.classified.length).toBeLessThanOrEqual(read + 2);
    await bench.deliverCancels();
    expect(bench.leased).toBe(0);
  });
});

describe("a client", () => {
  test("is not asked for its signal by a quick query", async () => {
    const { bench, answer, signalsAsked } = started(["select 1"]);
    await answer;
    bench.clock.advance(10 * WATCH_MS);

    expect(signalsAsked()).toBe(0);
  });

  test("that goes while its query runs, before the watch or after, gives it up", async () => {
    for (const goneAtMs of [0, 2 * WATCH_MS]) {
      const { bench, client, answer } = started(["select 1"]);
      bench.backend.hold();
      await settled();
      bench.clock.advance(goneAtMs);
      client.abort();
      bench.clock.advance(WATCH_MS);

      expect((await answer).error?.code).toBe("57014");
      expect(bench.cancels).toHaveLength(1);
    }
  });
});
