// Checks read-your-writes: clients write growing numbers and read them back, and a smaller number is stale.
import type { RegisterSession, Surface } from "./register-sessions.ts";
import type { SeededRandom } from "./seeded-random.ts";

export interface Pair {
  readonly surface: Surface;
  readonly key: string;
  readonly written: number;
  readonly seen: number | undefined;
  readonly servedBy: string | undefined;
}

export interface PairCheck {
  readonly pairCount: number;
  /** Reads that did not see the write before them; empty when the promise was kept. */
  readonly stale: readonly Pair[];
  /** How many reads the replicas served, where the surface tells. */
  readonly replicaReadCount: number;
}

export interface PairOptions {
  readonly pairsPerSession: number;
  /** Milliseconds between a write and its read, drawn for each pair. */
  readonly pauseMs: (surface: Surface) => number;
}

/** All sessions at the same time, each one write and one read after the other. Nothing is written twice. */
export async function checkPairs(
  sessions: readonly RegisterSession[],
  { pairsPerSession, pauseMs }: PairOptions,
): Promise<PairCheck> {
  const pairs = await Promise.all(
    sessions.map((session) => runPairs(session, pairsPerSession, pauseMs)),
  );
  return summarize(pairs.flat());
}

/**
 * So that a read falls before, into and behind the moment when its write is replayed. A session on the wire reads from the primary until
 * its position is known, which takes longer than a token.
 */
export function randomPause(random: SeededRandom): (surface: Surface) => number {
  return (surface) => random.next() * (surface === "http" || surface === "sdk" ? 5 : 50);
}

async function runPairs(
  session: RegisterSession,
  count: number,
  pauseMs: (surface: Surface) => number,
): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (let written = 1; written <= count; written++) {
    await session.write(written);
    const ms = pauseMs(session.surface);
    // A timer of less than a millisecond would still take one.
    if (ms >= 1) await Bun.sleep(ms);
    pairs.push(await readBack(session, written));
  }
  return pairs;
}

/** One read behind the write of `written`. */
export async function readBack(session: RegisterSession, written: number): Promise<Pair> {
  const { value, servedBy } = await session.read();
  return { surface: session.surface, key: session.key, written, seen: value, servedBy };
}

export function summarize(pairs: readonly Pair[]): PairCheck {
  return {
    pairCount: pairs.length,
    stale: pairs.filter(({ seen, written }) => seen === undefined || seen < written),
    replicaReadCount: pairs.filter(({ servedBy }) => servedBy?.startsWith("replica:")).length,
  };
}
