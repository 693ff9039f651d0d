// The checker of read-your-writes can fail: with the probe in front of the client's Sync the token names the position before the commit
// record. Replicas that hold back commit records (recovery_min_apply_delay) stand exactly there, so that every such token is satisfied
// too early; with the probe in its right place none is.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { caughtUp } from "#gateway/embedded/caught-up.ts";
import { tokenAudience } from "#pool/consistency/token-audience.ts";
import { parseLsn } from "#pool/consistency/lsn.ts";
import { Fate } from "#pool/exchange/reply-plan.ts";
import { type ProbePlacement, probeAfterSync } from "#pool/session/probe.ts";
import { type Pair, checkPairs, readBack, summarize } from "#test/support/read-write-pairs.ts";
import {
  type HttpRegister,
  REGISTERS_TABLE,
  type Surface,
  type Trust,
  httpRegister,
  sdkRegister,
  webSocketRegister,
  wireRegister,
} from "#test/support/register-sessions.ts";
import { setApplyDelay, whenCommitIsHeldBack } from "#test/support/replay-control.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const TRIALS = 10;
/** Longer than a trial takes by far, even on a busy machine. */
const APPLY_DELAY_MS = 10_000;

/** By then a session on the wire knows its position, and no longer reads from the primary because it does not. */
const SAMPLE_KNOWN_MS = 150;

/** Inside the client's implicit transaction: its commit record comes behind the position that is read. */
const probeBeforeSync: ProbePlacement = (writer, result) => {
  writer.probe(result);
  writer.sync(Fate.FORWARD);
};

let cluster: Cluster;

beforeAll(async () => {
  // A vacuum's own commit would hold replay back before the position that a trial is about.
  cluster = await testCluster({ settings: { autovacuum: "off" } });
  await cluster.primary.sql(`set role app; ${REGISTERS_TABLE}`);
});

afterAll(async () => {
  await cluster?.stop();
});

interface Trial {
  /** Where the replicas stand, against the token: before it, or at it or beyond. */
  readonly replay: "before_token" | "covers_token";
  readonly isStale: boolean;
  readonly servedBy: "primary" | "replica";
}

/** One write whose commit both replicas hold back, and one read with its token. */
async function tryOnce(
  gateway: TestGateway,
  register: HttpRegister,
  value: number,
): Promise<Trial> {
  await Promise.all(cluster.replicas.map((node) => setApplyDelay(node, 0)));
  await caughtUp(cluster);
  await Promise.all(cluster.replicas.map((node) => setApplyDelay(node, APPLY_DELAY_MS)));

  await register.write(value);
  await whenCommitIsHeldBack(cluster);
  const tokenLsn = lsnOf(gateway, register.token);
  const replayLsns = await Promise.all(cluster.replicas.map(replayLsn));
  const pair = await readBack(register, value);

  return {
    replay: replayLsns.every((lsn) => lsn >= tokenLsn) ? "covers_token" : "before_token",
    isStale: summarize([pair]).stale.length > 0,
    servedBy: pair.servedBy === "primary" ? "primary" : "replica",
  };
}

function lsnOf(gateway: TestGateway, token: string | null): bigint {
  const reading = gateway.gateway.context.tokens.read(token ?? "", tokenAudience("app", "app"));
  const [position] = reading.ok ? reading.positions : [];
  if (position === undefined) throw new Error("the token does not verify");
  return position.lsn;
}

async function replayLsn(node: Cluster["primary"]): Promise<bigint> {
  const [row] = await node.sql("select pg_last_wal_replay_lsn()::text as lsn");
  const lsn = parseLsn(String(row?.["lsn"]));
  if (lsn === undefined) throw new Error(`${node.name} named no position`);
  return lsn;
}

async function trials(name: string, probePlacement: ProbePlacement): Promise<Trial[]> {
  await using gateway = await testGateway(cluster, { probePlacement });
  const register = await httpRegister(gateway, "trusted", name);
  const done: Trial[] = [];
  for (let value = 1; value <= TRIALS; value++) done.push(await tryOnce(gateway, register, value));
  return done;
}

function everyTrial(expected: Trial): Trial[] {
  return Array.from({ length: TRIALS }, () => expected);
}

test("every read with a token of a probe before the commit is stale while replicas hold back commits", async () => {
  const expected: Trial = { replay: "covers_token", isStale: true, servedBy: "replica" };

  expect(await trials("before", probeBeforeSync)).toEqual(everyTrial(expected));
});

test("no read with a token of a probe behind the commit is stale while replicas hold back commits", async () => {
  const expected: Trial = { replay: "before_token", isStale: false, servedBy: "primary" };

  expect(await trials("behind", probeAfterSync)).toEqual(everyTrial(expected));
});

/** Pairs on every surface while both replicas hold back every commit; the surfaces with stale reads. */
async function staleSurfaces(consistency: string, trust: Trust): Promise<Set<Surface>> {
  await using gateway = await testGateway(cluster, {
    sections: { "databases.app": `consistency = "${consistency}"` },
  });
  const key = (surface: Surface): string => `${consistency} ${trust} ${surface}`;
  const sessions = await Promise.all([
    httpRegister(gateway, trust, key("http")),
    wireRegister(gateway, trust, key("wire")),
    webSocketRegister(gateway, trust, key("websocket"), true),
    Promise.resolve(sdkRegister(gateway, trust, key("sdk"))),
  ]);
  await Promise.all(cluster.replicas.map((node) => setApplyDelay(node, 0)));
  await caughtUp(cluster);
  await Promise.all(cluster.replicas.map((node) => setApplyDelay(node, APPLY_DELAY_MS)));

  const stale: Pair[] = [];
  for (const session of sessions) {
    // One by one, as untrusted sessions would take connections from each other, and a connection that was waited for may end at the primary.
    const options = { pairsPerSession: 5, pauseMs: () => SAMPLE_KNOWN_MS };
    stale.push(...(await checkPairs([session], options)).stale);
    await session.close();
  }
  return new Set(stale.map(({ surface }) => surface));
}

describe.each(["trusted", "untrusted"] as const)("with %s SQL", (trust) => {
  test("no read is stale on any surface while replicas hold back commits", async () => {
    expect(await staleSurfaces("session", trust)).toEqual(new Set());
  });

  test("reads are stale on every surface while replicas hold back commits and reads may be of any age", async () => {
    expect(await staleSurfaces("eventual", trust)).toEqual(
      new Set(["http", "wire", "websocket", "sdk"]),
    );
  });
});
