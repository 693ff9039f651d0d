// Read-your-writes on a primary with two replicas: a client that has written sees its write, over HTTP by its token, over the wire and
// the WebSocket within its session, and by the SDK. Replicas that lag or stand still are passed over, the others serve the reads.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { caughtUp } from "#gateway/embedded/caught-up.ts";
import { type Pair, checkPairs, randomPause, readBack } from "#test/support/read-write-pairs.ts";
import {
  type RegisterSession,
  REGISTERS_TABLE,
  type Trust,
  httpRegister,
  sdkRegister,
  webSocketRegister,
  wireRegister,
} from "#test/support/register-sessions.ts";
import {
  pauseReplay,
  pollFor,
  resumeReplay,
  whileReplayStumbles,
} from "#test/support/replay-control.ts";
import { SeededRandom, testSeed } from "#test/support/seeded-random.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

/** Twenty sessions of a hundred pairs each are the 2,000. */
const PAIRS_PER_SESSION = 100;
const SESSIONS = { http: 8, wire: 5, websocket: 4, sdk: 3 } as const;
/** Of the reads, while replay runs. */
const REPLICA_SHARE_MIN = 0.8;
/** Of the 2,000 reads while replay lags and halts, which sends most of those right behind their write to the primary. */
const REPLICA_READS_MIN = 200;

let cluster: Cluster;
let gateway: TestGateway;
let opened: RegisterSession[] = [];

beforeAll(async () => {
  cluster = await testCluster();
  await cluster.primary.sql(`set role app; ${REGISTERS_TABLE}`);
  await caughtUp(cluster);
  gateway = await testGateway(cluster);
});

afterAll(async () => {
  await closeSessions();
  await gateway?.stop();
  await cluster?.stop();
});

async function closeSessions(): Promise<void> {
  const closing = opened;
  opened = [];
  await Promise.all(closing.map((session) => session.close()));
}

type Counts = Readonly<Record<keyof typeof SESSIONS, number>>;

/** Sessions with a register each, closed after the tests. */
async function openSessions(
  trust: Trust,
  theme: string,
  counts: Counts,
): Promise<RegisterSession[]> {
  const open = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => make(index));
  const key = (surface: string, index: number): string => `${theme} ${trust} ${surface} ${index}`;
  const sessions = await Promise.all([
    ...open(counts.http, (index) => httpRegister(gateway, trust, key("http", index))),
    ...open(counts.wire, (index) => wireRegister(gateway, trust, key("wire", index))),
    ...open(counts.websocket, (index) =>
      webSocketRegister(gateway, trust, key("websocket", index), index % 2 === 0),
    ),
    ...open(counts.sdk, (index) => Promise.resolve(sdkRegister(gateway, trust, key("sdk", index)))),
  ]);
  opened.push(...sessions);
  return sessions;
}

/**
 * How many reads the router has sent to a replica so far. No SQL that a replica may run tells which server runs it, and the wire has no
 * header that does, so the router's own counter is asked.
 */
function replicaRouteCount(): number {
  return gateway.gateway.context.environment.counters.routes.get("replica") ?? 0;
}

describe.each(["trusted", "untrusted"] as const)("with %s SQL", (trust) => {
  test("reads with a token come from the primary while all replay is paused, and from a replica after it", async () => {
    const register = await httpRegister(gateway, trust, `paused ${trust}`);
    await Promise.all(cluster.replicas.map(pauseReplay));

    await register.write(1);
    const paused = [await readBack(register, 1), await readBack(register, 1)];
    await Promise.all(cluster.replicas.map(resumeReplay));
    const resumed = await pollFor("a replica serves the read", async () => {
      const pair = await readBack(register, 1);
      // Whoever serves it on the way must have the row.
      expect(pair.seen).toBe(1);
      return pair.servedBy === "primary" ? undefined : pair;
    });

    const fromPrimary: Pair = {
      surface: "http",
      key: `paused ${trust}`,
      written: 1,
      seen: 1,
      servedBy: "primary",
    };
    expect(paused).toEqual([fromPrimary, fromPrimary]);
    expect(resumed).toEqual({
      ...fromPrimary,
      servedBy: expect.stringMatching(/^replica:replica[12]$/),
    });
  });

  test("no read of 2,000 random write/read pairs is stale while replay lags and halts", async () => {
    const random = new SeededRandom(testSeed());
    const sessions = await openSessions(trust, "pairs", SESSIONS);
    const before = replicaRouteCount();

    const check = await whileReplayStumbles(cluster, random, () =>
      checkPairs(sessions, {
        pairsPerSession: PAIRS_PER_SESSION,
        pauseMs: randomPause(random),
      }),
    );
    await closeSessions();

    const { pairCount, stale } = check;
    expect({ pairCount, stale, seed: random.seed }).toEqual({
      pairCount: 2_000,
      stale: [],
      seed: random.seed,
    });
    // Without reads from replicas there would be nothing to prove.
    expect(replicaRouteCount() - before).toBeGreaterThanOrEqual(REPLICA_READS_MIN);
  });

  test("at least 80 % of the reads with a token come from a replica while replay runs", async () => {
    await caughtUp(cluster);
    const sessions = await openSessions(trust, "share", { http: 4, wire: 0, websocket: 0, sdk: 0 });

    const check = await checkPairs(sessions, { pairsPerSession: 75, pauseMs: () => 0 });

    expect({ pairCount: check.pairCount, stale: check.stale }).toEqual({
      pairCount: 300,
      stale: [],
    });
    expect(check.replicaReadCount / check.pairCount).toBeGreaterThanOrEqual(REPLICA_SHARE_MIN);
  });

  test("at least 80 % of the wire reads come from a replica 300 ms after their write", async () => {
    await caughtUp(cluster);
    const sessions = await openSessions(trust, "late", { http: 0, wire: 10, websocket: 5, sdk: 0 });
    const before = replicaRouteCount();

    const check = await checkPairs(sessions, { pairsPerSession: 4, pauseMs: () => 300 });
    const replicaReadCount = replicaRouteCount() - before;
    await closeSessions();

    expect({ pairCount: check.pairCount, stale: check.stale }).toEqual({
      pairCount: 60,
      stale: [],
    });
    expect(replicaReadCount / check.pairCount).toBeGreaterThanOrEqual(REPLICA_SHARE_MIN);
  });
});
