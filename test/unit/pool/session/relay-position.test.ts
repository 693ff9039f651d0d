// How a session's reads find a server that is fresh enough, and where the position of a token comes from.
import { beforeAll, describe, expect, test } from "bun:test";
import type { Position } from "#pool/consistency/position.ts";
import { PoolError } from "#pool/errors.ts";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, server } from "#test/support/wire-frames.ts";
import { type BenchClient, POSITION, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const WRITE = "insert into t values (1)";
const PROBE = [
  "P _walgate_lsn select pg_catalog.pg_current_wal_insert_lsn()",
  "B _walgate_lsn _walgate_lsn",
  "E _walgate_lsn",
  "S",
];

function connected(profile: ConstructorParameters<typeof RelayBench>[0] = {}): {
  bench: RelayBench;
  app: BenchClient;
} {
  const bench = new RelayBench(profile);
  bench.cluster.hasReplica = true;
  return { bench, app: bench.connect() };
}

/** Sends with a wish for the position; the answers, and every result that came. */
async function minted(
  app: BenchClient,
  ...parts: readonly Uint8Array[]
): Promise<{ answers: string[]; positions: (Position | undefined)[] }> {
  const positions: (Position | undefined)[] = [];
  app.relay.wantPosition((position) => positions.push(position));
  const answers = await app.send(...parts);
  return { answers, positions };
}

describe("reads after writes on the wire", () => {
  test("after a write the session reads from the primary until a later sample of it is known", async () => {
    const { bench, app } = connected();
    const roles: (string | undefined)[] = [];
    const read = async (): Promise<void> => {
      await app.send(client.query("select 1"));
      roles.push(app.relay.servedBy?.role);
    };

    await read();
    await app.send(client.query(WRITE));
    await read();
    bench.cluster.sampled = POSITION;
    await read();

    expect(roles).toEqual(["replica", "primary", "replica"]);
    expect(bench.cluster.requests.at(-1)?.positions).toEqual([POSITION]);
    expect(bench.cluster.samplesWanted).toBeGreaterThan(0);
  });

  test("nothing is held back and nothing is sent for it", async () => {
    const { bench, app } = connected();

    const answers = await app.send(client.query(WRITE));

    expect(answers).toEqual(["C INSERT 0 1", "Z I"]);
    expect(bench.backend.received).toEqual([`Q ${WRITE}`]);
  });

  test("a write counts when its transaction ends", async () => {
    const { bench, app } = connected();

    await app.send(client.query("begin"), client.query(WRITE));
    const inside = bench.cluster.samplesWanted;
    await app.send(client.query("commit"));

    expect([inside, bench.cluster.samplesWanted]).toEqual([0, 1]);
  });

  test("after a lost connection the session reads from the primary", async () => {
    const { bench, app } = connected();
    await app.send(client.query("show work_mem"));
    bench.backend.hold();
    app.push(client.query(WRITE));
    await settled();
    bench.backend.break();
    await settled();

    await app.send(client.query("select 1"));

    expect(app.relay.servedBy?.role).toBe("primary");
  });

  test("positions that the session came with are asked of the replica", async () => {
    const { bench } = connected();
    const app = bench.connect({}, [POSITION]);

    await app.send(client.query("select 1"));

    expect(bench.cluster.requests.at(-1)?.positions).toEqual([POSITION]);
  });

  test("with eventual consistency reads go to a replica, write or not, and no position is asked of it", async () => {
    const { bench } = connected({ consistency: "eventual" });
    const app = bench.connect({}, [POSITION]);

    await app.send(client.query(WRITE));
    await app.send(client.query("select 1"));

    expect(app.relay.servedBy?.role).toBe("replica");
    expect(bench.cluster.requests.at(-1)?.positions).toEqual([]);
  });

  test("why a read goes to the primary is counted apart from writes", async () => {
    const { bench, app } = connected();
    const session = bench.connect({ profile: { ...bench.profile, poolMode: "session" } });

    await app.send(client.query(WRITE));
    await app.send(client.query("select 1"));
    await session.send(client.query("select 1"));

    expect(Object.fromEntries(bench.counters.routes)).toEqual({
      write: 1,
      position_unknown: 1,
      pinned: 1,
    });
  });
});

describe("the probe", () => {
  test("it travels behind the client's own Sync, and the client sees nothing of it", async () => {
    const { bench, app } = connected();

    const { answers, positions } = await minted(app, client.unnamed(WRITE));

    expect(answers).toEqual(["1", "2", "n", "C INSERT 0 1", "Z I"]);
    expect(positions).toEqual([POSITION]);
    expect(bench.backend.received.slice(-PROBE.length - 1)).toEqual(["S", ...PROBE]);
    expect(bench.cluster.probed).toEqual(["0/3000060"]);
    expect(bench.leased).toBe(0);
  });

  test("its statement is prepared once on each connection", async () => {
    const { bench, app } = connected();

    await minted(app, client.unnamed(WRITE));
    await minted(app, client.unnamed(WRITE));

    const probes = bench.backend.received.filter((line) => line === PROBE[0]);
    expect(probes).toHaveLength(1);
  });

  test("the client's unnamed statement and portal survive it", async () => {
    const { app } = connected();
    await app.send(client.query("begin"), client.query("commit"));

    await minted(app, client.parse("", WRITE), client.run(""));

    expect(await app.send(client.run(""))).toEqual(["2", "C INSERT 0 1", "Z I"]);
  });

  test("after a read there is none, and no position", async () => {
    const { bench, app } = connected();

    const { positions } = await minted(app, client.unnamed("select 1"));

    expect(positions).toEqual([undefined]);
    expect(bench.backend.received).not.toContain("E _walgate_lsn");
  });

  test("a whole transaction in one pipeline is probed behind its COMMIT, never inside", async () => {
    const { bench, app } = connected();

    const { positions } = await minted(
      app,
      client.unnamed("begin"),
      client.unnamed(WRITE),
      client.unnamed("commit"),
    );

    const commit = bench.backend.received.indexOf('P "" commit');
    const probes = bench.backend.received.flatMap((line, at) =>
      line === "E _walgate_lsn" ? [at] : [],
    );
    expect(positions).toEqual([POSITION]);
    expect(probes).toHaveLength(1);
    expect(probes[0]).toBeGreaterThan(commit);
  });

  test("in an open transaction the oracle is asked", async () => {
    const { bench, app } = connected();
    await app.send(client.query("begin"));

    const { answers, positions } = await minted(app, client.unnamed(WRITE));

    expect(answers.at(-1)).toBe("Z T");
    expect(positions).toEqual([POSITION]);
    expect(bench.cluster.oracleCalls).toBe(1);
    expect(bench.backend.received).not.toContain("E _walgate_lsn");
  });

  test("behind a Sync that a copy ignores there is none: it would be read as copy data", async () => {
    const { bench, app } = connected();

    const { answers } = await minted(
      app,
      client.parse("", "copy t from stdin"),
      client.bind("", ""),
      client.execute(""),
      client.sync(),
    );
    const ended = await app.send(client.copyData("1\n"), client.copyDone(), client.sync());

    expect([answers, ended]).toEqual([
      ["1", "2", "G"],
      ["C COPY 1", "Z I"],
    ]);
    expect(bench.cluster.oracleCalls).toBe(1);
  });

  test("an error in the client's segment does not disturb it", async () => {
    const { app } = connected();

    const { answers, positions } = await minted(
      app,
      client.unnamed(WRITE),
      client.unnamed("select 1/0"),
    );

    expect(answers.slice(-2)).toEqual(["E 22012 division by zero", "Z I"]);
    expect(positions).toEqual([POSITION]);
  });

  test("one that fails costs no error: the oracle is asked, and the next is prepared anew", async () => {
    const { bench, app } = connected();
    await minted(app, client.unnamed(WRITE));
    bench.backend.model.dropStatements();

    const failed = await minted(app, client.unnamed(WRITE));
    const oracleCalls = bench.cluster.oracleCalls;
    const again = await minted(app, client.unnamed(WRITE));

    expect(failed).toEqual({
      answers: ["1", "2", "n", "C INSERT 0 1", "Z I"],
      positions: [POSITION],
    });
    expect(again.positions).toEqual([POSITION]);
    expect([oracleCalls, bench.cluster.oracleCalls, bench.counters.probesFailed]).toEqual([
      1, 1, 1,
    ]);
  });

  test("one that is refused by the server is hidden, and the oracle is asked", async () => {
    const { bench, app } = connected();
    await minted(app, client.unnamed(WRITE));
    bench.backend.hold();
    app.answers();
    const positions: (Position | undefined)[] = [];
    app.relay.wantPosition((position) => positions.push(position));
    app.push(client.unnamed(WRITE));
    await settled();
    bench.backend.discardHeld();
    bench.backend.send(
      server.parseComplete(),
      server.bindComplete(),
      server.noData(),
      server.commandComplete("INSERT 0 1"),
      server.ready("I"),
      server.error("57014", "canceling statement due to statement timeout"),
      server.ready("I"),
    );
    await settled();

    expect(app.answers()).toEqual(["1", "2", "n", "C INSERT 0 1", "Z I"]);
    expect(positions).toEqual([POSITION]);
    expect({ oracle: bench.cluster.oracleCalls, failed: bench.counters.probesFailed }).toEqual({
      oracle: 1,
      failed: 1,
    });
  });

  test.each(["probe_backwards", "malformed"] as const)(
    "a server whose answer is %s is not used again, and the oracle is asked",
    async (verdict) => {
      const { bench, app } = connected();
      bench.cluster.verdict = verdict;

      const { positions } = await minted(app, client.unnamed(WRITE));
      await settled();

      expect(positions).toEqual([POSITION]);
      expect([bench.leased, bench.backend.hasClosed]).toEqual([0, true]);
      bench.cluster.verdict = POSITION;
      await minted(app, client.unnamed(WRITE));
      expect(bench.backends[1]?.hasClosed).toBe(false);
    },
  );

  test("a primary that has changed meanwhile is no reason to drop the connection", async () => {
    const { bench, app } = connected();
    bench.cluster.verdict = "unknown";

    const { positions } = await minted(app, client.unnamed(WRITE));

    expect(positions).toEqual([POSITION]);
    expect([bench.cluster.oracleCalls, bench.backend.hasClosed]).toEqual([1, false]);
  });
});

describe("the oracle", () => {
  test("for untrusted SQL it alone is asked, once everything is acknowledged", async () => {
    const { bench, app } = connected({ isTrusted: false });

    const { positions } = await minted(app, client.unnamed(WRITE));

    expect(positions).toEqual([POSITION]);
    expect(bench.cluster.oracleCalls).toBe(1);
    expect(bench.backend.received).not.toContain("E _walgate_lsn");
  });

  test("for a simple Query as well", async () => {
    const { bench, app } = connected();

    const { positions } = await minted(app, client.query(WRITE));

    expect(positions).toEqual([POSITION]);
    expect(bench.cluster.oracleCalls).toBe(1);
  });

  test("one that fails costs the token, not the answer", async () => {
    const { bench, app } = connected();
    bench.cluster.oracleError = new PoolError("ERR_NO_SERVER", "no primary", { sqlState: "57P03" });

    const { answers, positions } = await minted(app, client.query(WRITE));

    expect(answers).toEqual(["C INSERT 0 1", "Z I"]);
    expect(positions).toEqual([undefined]);
  });

  test("after a lost connection it is asked, for the write may have been done", async () => {
    const { bench, app } = connected();
    await app.send(client.query("show work_mem"));
    bench.backend.hold();
    const positions: (Position | undefined)[] = [];
    app.relay.wantPosition((position) => positions.push(position));
    app.push(client.unnamed(WRITE));
    await settled();

    bench.backend.break();
    await settled();

    expect(positions).toEqual([POSITION]);
  });

  test("a request that got no connection has no position", async () => {
    const { bench, app } = connected();
    bench.openError = new PoolError("ERR_CONNECT_FAILED", "refused", { sqlState: "08001" });

    const { answers, positions } = await minted(app, client.unnamed(WRITE));

    expect(answers).toEqual(["E 08001 refused", "Z I"]);
    expect(positions).toEqual([undefined]);
  });
});
