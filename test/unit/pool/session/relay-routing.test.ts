// Whom a relay asks for what, and that no answer overtakes another.
import { beforeAll, describe, expect, test } from "bun:test";
import { PoolError } from "#pool/errors.ts";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client } from "#test/support/wire-frames.ts";
import { POSITION, RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

describe("who serves", () => {
  test("what is proven read goes to a replica, all else to the primary", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();
    const roles: (string | undefined)[] = [];

    for (const bytes of [
      client.query("select 1"),
      client.unnamed("select 1"),
      client.query("insert into t values (1)"),
      client.query("select 1; insert into t values (1)"),
      client.query("selec"),
    ]) {
      bench.cluster.sampled = POSITION;
      await app.send(bytes);
      roles.push(app.relay.servedBy?.role);
    }

    expect(roles).toEqual(["replica", "replica", "primary", "primary", "primary"]);
  });

  test("a read whose replica takes no connection goes to the primary, now and in the pause between tries", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    bench.replicaOpenError = new PoolError("ERR_SERVER_LOGIN_REFUSED", "too many connections", {
      sqlState: "53300",
    });
    const app = bench.connect();

    const answers = [
      await app.send(client.query("select 1")),
      await app.send(client.query("select 1")),
    ];

    expect(answers.flat().filter((answer) => answer.startsWith("E"))).toEqual([]);
    expect(app.relay.servedBy?.role).toBe("primary");
  });

  test("a read in a transaction, and one whose segment also writes, goes to the primary", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();

    await app.send(client.query("begin"), client.query("select 1"), client.query("commit"));
    await app.send(
      client.parse("", "select 1"),
      client.bind("", ""),
      client.execute(""),
      client.parse("", "insert into t values (1)"),
      client.bind("", ""),
      client.execute(""),
      client.sync(),
    );

    expect(bench.cluster.requests.map(({ access }) => access)).toEqual(["primary", "primary"]);
  });

  test("a read that is flushed before its Sync goes to the primary, as anything may follow", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();

    await app.send(client.parse("", "select 1"), client.flush());

    expect(app.relay.servedBy?.role).toBe("primary");
  });

  test("a Flush with its Sync in the same chunk does not change who serves", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();

    const answers = await app.send(
      client.parse("", "select 1"),
      client.flush(),
      client.bind("", ""),
      client.execute(""),
      client.sync(),
    );

    expect(answers).toEqual(["1", "2", "D 1", "C SELECT 1", "Z I"]);
    expect(app.relay.servedBy?.role).toBe("replica");
  });

  test("a segment larger than is kept goes to the primary as far as it has come", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();
    const binds = Array.from({ length: 40 }, () => client.bind("", "", ["x".repeat(2_000)]));

    app.push(client.parse("", "select 1"), ...binds);
    await settled();

    expect(app.relay.servedBy?.role).toBe("primary");
  });

  test("a pinned session stays on the primary with its reads, and the reason is counted once", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();

    await app.send(client.query("set work_mem = '1MB'"));
    await app.send(client.query("listen jobs"));
    await app.send(client.query("select 1"));

    expect(app.relay.servedBy?.role).toBe("primary");
    expect(app.relay.pinned).toBe("set");
    expect({ leased: bench.leased, pins: Object.fromEntries(bench.counters.pins) }).toEqual({
      leased: 1,
      pins: { set: 1 },
    });
  });

  test("in session mode the first message pins, and the connection is kept", async () => {
    const bench = new RelayBench({ poolMode: "session" });
    bench.cluster.hasReplica = true;
    const app = bench.connect();

    await app.send(client.query("select 1"));

    expect({
      pinned: app.relay.pinned,
      leased: bench.leased,
      role: app.relay.servedBy?.role,
    }).toEqual({
      pinned: "session_mode",
      leased: 1,
      role: "primary",
    });
  });

  test("a profile that is told to read from the primary does", async () => {
    const bench = new RelayBench({ consistency: "primary" });
    bench.cluster.hasReplica = true;
    const app = bench.connect();

    await app.send(client.query("select 1"));

    expect(app.relay.servedBy?.role).toBe("primary");
  });
});

describe("pipelines over a replica", () => {
  async function reading(): Promise<{ bench: RelayBench; app: ReturnType<RelayBench["connect"]> }> {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const app = bench.connect();
    await app.send(client.query("select 1"));
    bench.backend.hold();
    return { bench, app };
  }

  test("reads follow one another to the same replica without waiting", async () => {
    const { bench, app } = await reading();

    app.push(client.query("select 2"));
    app.push(client.query("select 3"));
    await settled();
    const received = [...bench.backend.received];
    bench.backend.release();
    await settled();

    expect(received).toEqual(["Q select 1", "Q select 2", "Q select 3"]);
    expect(app.answers()).toEqual([
      "T",
      "D 2",
      "C SELECT 1",
      "Z I",
      "T",
      "D 3",
      "C SELECT 1",
      "Z I",
    ]);
  });

  test("a write behind an unanswered read waits for it, and its answer comes second", async () => {
    const { bench, app } = await reading();

    app.push(
      client.query("select 2"),
      client.query("insert into t values (1)"),
      client.query("select 3"),
    );
    await settled();
    const before = bench.backends.length;
    bench.backend.release();
    await settled();

    expect(before).toBe(1);
    expect(app.answers()).toEqual([
      "T",
      "D 2",
      "C SELECT 1",
      "Z I",
      "C INSERT 0 1",
      "Z I",
      "T",
      "D 3",
      "C SELECT 1",
      "Z I",
    ]);
  });

  test("a large message behind an unanswered read waits too, and is then sent whole", async () => {
    const { bench, app } = await reading();
    const text = `insert into t values (1)${" ".repeat(70_000)}`;

    app.push(client.query("select 2"));
    app.push(client.query(text));
    await settled();
    bench.backend.release();
    await settled();

    expect(app.answers()).toEqual(["T", "D 2", "C SELECT 1", "Z I", "C INSERT 0 1", "Z I"]);
    expect(bench.backends[1]?.received).toEqual([`Q ${text}`]);
  });

  test("a cancel hits the read that runs, not the write that waits behind it", async () => {
    const { bench, app } = await reading();
    app.push(client.query("select 2"), client.query("insert into t values (1)"));
    await settled();

    app.relay.cancel();
    await settled();
    const early = app.answers();
    await bench.deliverCancels();
    bench.backend.release();
    await settled();

    expect(early).toEqual([]);
    expect(bench.cancels).toHaveLength(1);
    expect(app.answers()).toEqual(["T", "D 2", "C SELECT 1", "Z I", "C INSERT 0 1", "Z I"]);
  });
});

describe("a connection that was waited for", () => {
  test("a replica that fell behind meanwhile is given back, and the primary asked", async () => {
    const bench = new RelayBench();
    bench.cluster.hasReplica = true;
    const holder = bench.connect();
    await holder.send(client.query("select 1"));
    bench.backend.hold();
    holder.push(client.query("select 2"));
    const app = bench.connect();
    app.push(client.query("select 3"));
    await settled();

    bench.cluster.hasReplica = false;
    bench.backend.release();
    await settled();

    expect(app.answers()).toEqual(["T", "D 3", "C SELECT 1", "Z I"]);
    expect(app.relay.servedBy?.role).toBe("primary");
    expect(bench.leased).toBe(0);
  });

  test("one that was lost between its grant and its use is replaced", async () => {
    const bench = new RelayBench();
    const holder = bench.connect();
    await holder.send(client.query("begin"));
    const { pools } = bench.environment;
    const acquire = pools.acquire.bind(pools);
    let isFirst = true;
    pools.acquire = (request) => {
      const granted = request.granted.bind(request);
      request.granted = (connection) => {
        if (isFirst)
          connection.destroy(new PoolError("ERR_CONNECTION_LOST", "gone", { sqlState: "08006" }));
        isFirst = false;
        granted(connection);
      };
      return acquire(request);
    };
    const app = bench.connect();
    app.push(client.query("select 1"));

    await holder.send(client.query("commit"));

    expect(app.answers()).toEqual(["T", "D 1", "C SELECT 1", "Z I"]);
    expect(bench.leased).toBe(0);
  });
});
