// What a simulated cluster shows where and when: replication, pauses, restarts further back, promotion, and what it loses.
import { describe, expect, test } from "bun:test";
import { client } from "#test/support/wire-frames.ts";
import { sql } from "../../../simulation/server/statements.ts";
import { BLOCK_BYTES, START_LSN } from "../../../simulation/server/write-ahead-log.ts";
import { ServerBench } from "./server-bench.ts";

const KEY = 3;

/** Where a server is, as its monitor would be told. */
function places(bench: ServerBench): { stamps: number[]; lsns: number[] } {
  const { servers } = bench.cluster;
  return {
    stamps: servers.map((server) => server.stampOf(KEY)),
    lsns: servers.map((server) => server.lsn),
  };
}

describe("a committed write", () => {
  test("is visible at the primary when it is acknowledged, and at a replica once it was sent and applied", () => {
    const bench = new ServerBench();
    bench.server(1).transitMs = 1_000;
    bench.server(1).applyMs = 1_000;
    const session = bench.login();
    const before = bench.clock.now();
    const stamp = bench.write(session, "1.1", KEY);

    const seen = [0, 1].map((index) => bench.server(index).stampOf(KEY));
    bench.pass(before + 1_999 - bench.clock.now());
    const early = bench.server(1).stampOf(KEY);
    bench.pass(1_000);

    expect([seen, early]).toEqual([[stamp, 0], 0]);
    expect(places(bench).stamps).toEqual([stamp, stamp, stamp]);
  });

  test("is not visible at a replica whose replay position has not reached it, whatever is asked first", () => {
    const bench = new ServerBench();
    bench.server(1).transitMs = 300;
    const session = bench.login();
    const stamp = bench.write(session, "1.1", KEY);
    const { lsn } = bench.server(0);

    const samples = Array.from({ length: 400 }, () => {
      bench.pass(1);
      const replayed = bench.server(1).lsn;
      return { isReached: replayed >= lsn, isVisible: bench.server(1).stampOf(KEY) === stamp };
    });

    expect(samples.filter(({ isReached, isVisible }) => isReached !== isVisible)).toEqual([]);
    expect(new Set(samples.map(({ isReached }) => isReached))).toEqual(new Set([false, true]));
  });

  test("has a position behind all positions that were told before it", () => {
    const bench = new ServerBench();
    const session = bench.login();
    session.ask(client.query("BEGIN"));
    const start = bench.server(0).lsn;
    session.ask(client.query(sql.write("1.1", KEY)));
    const written = bench.server(0).lsn;
    const isVisibleEarly = bench.server(0).stampOf(KEY) !== 0;
    session.ask(client.query("COMMIT"));
    const committed = bench.server(0).lsn;

    expect([start < written, written < committed, isVisibleEarly]).toEqual([true, true, false]);
  });
});

test("a record that fills its page is told behind the next header by a primary, and at the page's end by a replica", () => {
  const bench = new ServerBench();
  const room = BLOCK_BYTES - (START_LSN % BLOCK_BYTES);
  bench.server(0).log(room);
  bench.pass(10);

  expect(places(bench).lsns.map((lsn) => lsn - START_LSN - room)).toEqual([24, 0, 0]);
});

test("a write is refused by a server in recovery", () => {
  const session = new ServerBench().login(1);

  const [reply = ""] = session.ask(client.query(sql.write("1.1", KEY)));

  expect(reply).toBe("E 25006 cannot execute UPDATE in a read-only transaction");
});

test("a replica whose replay is paused stays where it is, and goes on where it stopped", () => {
  const bench = new ServerBench();
  const session = bench.login();
  const first = bench.write(session, "1.1", KEY);
  bench.pass(10);
  bench.server(1).catchUp();
  bench.server(1).isReplayPaused = true;
  const second = bench.write(session, "1.2", KEY);
  bench.pass(1_000);
  const paused = places(bench).stamps;
  bench.server(1).isReplayPaused = false;

  expect(paused).toEqual([second, first, second]);
  expect(places(bench).stamps).toEqual([second, second, second]);
});

describe("after a restart", () => {
  test("a primary shows all that was committed, as another life of itself", () => {
    const bench = new ServerBench();
    const stamp = bench.write(bench.login(), "1.1", KEY);
    const before = { lsn: bench.server(0).lsn, startedAt: bench.server(0).startedAt };
    bench.cluster.crash(bench.server(0));
    bench.pass(10);
    bench.cluster.restart(bench.server(0));

    expect([bench.server(0).stampOf(KEY), bench.server(0).lsn]).toEqual([stamp, before.lsn]);
    expect(bench.server(0).startedAt).toBeGreaterThan(before.startedAt);
  });

  test("a replica may show less than before, at a lower position, until it has replayed again", () => {
    const bench = new ServerBench();
    const session = bench.login();
    const first = bench.write(session, "1.1", KEY);
    const middle = bench.server(0).lsn;
    const second = bench.write(session, "1.2", KEY);
    bench.pass(10);
    bench.cluster.crash(bench.server(1));
    bench.server(1).applyMs = 60_000;
    // A write makes two records, its own and the commit's.
    bench.cluster.restart(bench.server(1), 2);
    const rewound = [bench.server(1).stampOf(KEY), bench.server(1).lsn];
    bench.server(1).applyMs = 0;

    expect(rewound).toEqual([first, middle]);
    expect(places(bench).stamps).toEqual([second, second, second]);
  });

  test("a replica comes back at the beginning of history at the earliest", () => {
    const bench = new ServerBench();
    bench.write(bench.login(), "1.1", KEY);
    bench.pass(10);
    const before = bench.server(1).applied;
    bench.cluster.crash(bench.server(1));
    bench.server(1).applyMs = 60_000;
    bench.cluster.restart(bench.server(1), 60);

    expect([before, bench.server(1).applied, bench.server(1).stampOf(KEY)]).toEqual([2, 0, 0]);
  });
});

describe("after a promotion", () => {
  /** The first replica has not received the last of two writes, and becomes the primary. */
  function failedOver(): { bench: ServerBench; kept: number; lost: number; oldLsn: number } {
    const bench = new ServerBench();
    const session = bench.login();
    const kept = bench.write(session, "1.1", KEY);
    bench.pass(10);
    bench.server(1).catchUp();
    bench.server(1).transitMs = 60_000;
    const lost = bench.write(session, "1.2", KEY);
    bench.pass(10);
    const oldLsn = bench.server(0).lsn;
    bench.cluster.crash(bench.server(0));
    bench.cluster.promote(bench.server(1));
    return { bench, kept, lost, oldLsn };
  }

  test("the replica is a primary of the next timeline, from what it had on", () => {
    const { bench, kept, lost, oldLsn } = failedOver();

    expect([bench.cluster.primary?.name, bench.server(1).timeline.id]).toEqual(["server2", 2]);
    expect(bench.server(1).stampOf(KEY)).toBe(kept);
    expect(bench.server(1).lsn).toBeLessThan(oldLsn);
    expect([...bench.cluster.lost]).toEqual([lost]);
  });

  test("positions of the new timeline pass the old primary's without what it had", () => {
    const { bench, kept, oldLsn } = failedOver();
    const session = bench.login(1);
    bench.until("the new timeline is longer", () => {
      bench.write(session, "2.1", KEY + 1);
      return bench.server(1).lsn > oldLsn;
    });

    expect(bench.server(1).stampOf(KEY)).toBe(kept);
  });

  test("a new write has a higher stamp than any that was lost", () => {
    const { bench, lost } = failedOver();

    expect(bench.write(bench.login(1), "2.1", KEY)).toBeGreaterThan(lost);
  });

  test("a replica that is ahead stays with the old history until it is rebuilt from the new one", () => {
    const { bench, kept, lost } = failedOver();
    const ahead = [bench.server(2).stampOf(KEY), bench.server(2).timeline.id];
    bench.cluster.crash(bench.server(2));
    bench.server(2).applyMs = 60_000;
    bench.cluster.restart(bench.server(2));
    const shared = bench.server(2).applied;
    bench.server(2).applyMs = 0;
    bench.pass(10);

    expect(ahead).toEqual([lost, 1]);
    // The write that was kept made two records.
    expect(shared).toBe(2);
    expect([bench.server(2).stampOf(KEY), bench.server(2).timeline.id]).toEqual([kept, 2]);
  });

  test("the old primary comes back as a replica of the new one", () => {
    const { bench, kept } = failedOver();
    bench.cluster.restart(bench.server(0));
    bench.pass(10);
    const session = bench.login(0);

    expect([bench.server(0).isPrimary, bench.server(0).stampOf(KEY)]).toEqual([false, kept]);
    expect(session.ask(client.query(sql.write("2.1", KEY))).at(0)).toStartWith("E 25006");
  });
});

test("a replica replays what it has received before it is promoted, whatever delays it", () => {
  const bench = new ServerBench();
  bench.server(1).applyMs = 60_000;
  const stamp = bench.write(bench.login(), "1.1", KEY);
  bench.pass(10);
  bench.cluster.crash(bench.server(0));
  bench.cluster.promote(bench.server(1));

  expect([bench.server(1).stampOf(KEY), [...bench.cluster.lost]]).toEqual([stamp, []]);
});

describe("a primary that is up while a replica is promoted", () => {
  test("goes on, as the older of two, and what it commits is lost", () => {
    const bench = new ServerBench();
    const session = bench.login();
    const kept = bench.write(session, "1.1", KEY);
    bench.pass(10);
    bench.cluster.promote(bench.server(1));
    const lost = bench.write(session, "1.2", KEY);
    bench.pass(10);

    const isPrimary = bench.cluster.servers.map((server) => server.isPrimary);
    expect([isPrimary, bench.cluster.primary?.name]).toEqual([[true, true, false], "server2"]);
    expect(places(bench).stamps).toEqual([lost, kept, lost]);
    expect([...bench.cluster.lost]).toEqual([lost]);
  });

  test("comes back from a crash as a replica of the newer one", () => {
    const bench = new ServerBench();
    const session = bench.login();
    bench.cluster.promote(bench.server(1));
    bench.write(session, "1.1", KEY);
    bench.cluster.crash(bench.server(0));
    bench.cluster.restart(bench.server(0));
    const stamp = bench.write(bench.login(1), "2.1", KEY);
    bench.pass(10);

    expect([bench.server(0).isPrimary, bench.server(0).timeline.id]).toEqual([false, 2]);
    expect(bench.server(0).stampOf(KEY)).toBe(stamp);
  });

  test("keeps its replicas from being promoted", () => {
    const bench = new ServerBench();
    bench.cluster.promote(bench.server(1));

    expect(() => bench.cluster.promote(bench.server(2))).toThrow("not a replica of the latest");
  });
});

test("what a dead primary had not sent before it died never arrives", () => {
  const bench = new ServerBench();
  bench.server(1).transitMs = 500;
  bench.write(bench.login(), "1.1", KEY);
  bench.cluster.crash(bench.server(0));
  bench.pass(5_000);

  expect(bench.server(1).stampOf(KEY)).toBe(0);
});

describe("the seed", () => {
  /** Two sessions that contend, a crash and a failover, as a trace. */
  function trace(seed: number): string {
    const bench = new ServerBench(seed);
    const sessions = [bench.login(), bench.login()];
    for (let i = 0; i < 40; i++) {
      for (const [id, session] of sessions.entries()) {
        session.begin(client.query(sql.write(`${id + 1}.${i}`, i % 3)));
      }
      for (const session of sessions) session.finish();
    }
    bench.cluster.crash(bench.server(0));
    bench.cluster.promote(bench.server(2));
    bench.write(bench.login(2), "3.1", KEY);
    return bench.trace.lines?.join("") ?? "";
  }

  test("decides all that happens", () => {
    expect(trace(5)).toBe(trace(5));
  });

  test("makes another run of another one", () => {
    expect(trace(5)).not.toBe(trace(6));
  });
});
