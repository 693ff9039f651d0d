// Waiting for a server connection, and clients that do not read what they asked for.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { CLIENT_QUEUE_MAX } from "#pool/session/output-flow.ts";
import { RawClient, frontendFrame } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const MB = 1024 ** 2;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
});
afterAll(() => cluster.stop());

function login({ postgres }: TestGateway): Promise<RawClient> {
  return RawClient.login({ port: postgres.port, password: cluster.passwords.app });
}

function rss(): number {
  Bun.gc(true);
  return process.memoryUsage.rss();
}

/** Server sessions of clients, not counting those that hold nothing. */
async function activeQueries(): Promise<number> {
  const rows = await cluster.primary.sql(
    "select from pg_stat_activity where usename = 'app' and state <> 'idle'",
  );
  return rows.length;
}

test("with all connections in use a query fails with 57014 after query_wait_timeout, and its client stays", async () => {
  await using gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 1\nquery_wait_timeout = 0.3" },
  });
  const holder = await login(gateway);
  const waiter = await login(gateway);
  await holder.query("begin");

  const startedAt = performance.now();
  const refused = await waiter.query("select 1");
  const waitedMs = performance.now() - startedAt;
  await holder.query("commit");
  const served = await waiter.query("select 1");

  expect(refused).toEqual({ rows: [], tags: [], errors: ["57014"], types: "EZ", status: "I" });
  expect(waitedMs).toBeGreaterThan(290);
  expect(served.rows).toEqual([["1"]]);
  holder.terminate();
  waiter.terminate();
});

test("a queue that is full refuses with 53300, its client stays, and those in it are served in order", async () => {
  await using gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 1\nmax_query_waiters = 2" },
  });
  const [holder, first, second, third] = [
    await login(gateway),
    await login(gateway),
    await login(gateway),
    await login(gateway),
  ];
  await holder.query("begin");
  const order: string[] = [];
  const waits = (["first", "second"] as const).map(async (name, index) => {
    const answer = await [first, second][index]?.query(`select '${name}'`);
    order.push(answer?.rows[0]?.[0] ?? "");
  });
  await pollUntil(
    () => [...gateway.gateway.context.sessions].filter((session) => session.isBusy).length === 3,
    5_000,
    "two wait",
  );

  const refused = await third.query("select 'third'");
  await holder.query("commit");
  await Promise.all(waits);
  const served = await third.query("select 'third'");

  expect(refused.errors).toEqual(["53300"]);
  expect(order).toEqual(["first", "second"]);
  expect(served.rows).toEqual([["third"]]);
});

test("a client that leaves the queue leaves its place, and a cancel takes it out of it", async () => {
  await using gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 1\nmax_query_waiters = 1" },
  });
  const { sessions, cancels } = gateway.gateway.context;
  const busy = (count: number): Promise<void> =>
    pollUntil(
      () => [...sessions].filter((session) => session.isBusy).length === count,
      5_000,
      `${count} are busy`,
    );
  const holder = await login(gateway);
  const leaver = await login(gateway);
  const canceled = await login(gateway);
  await holder.query("begin");
  leaver.send(frontendFrame("Q", "select 1"));
  await busy(2);
  leaver.destroy();
  await busy(1);
  canceled.send(frontendFrame("Q", "select 1"));
  await busy(2);
  const { processId, secretKey } = canceled;
  const outcome = cancels.request({ processId, secretKey }, "test");
  const answer = await canceled.untilReady();

  holder.destroy();

  expect(outcome).toBe("canceled");
  expect(answer).toMatchObject({ errors: ["57014"], types: "EZ" });
});

test("a client that does not read 300 MB costs bounded memory, and after client_read_timeout its query and connection", async () => {
  await using gateway = await testGateway(cluster, {
    sections: { gateway: "client_read_timeout = 2", "profiles.server": "default_pool_size = 1" },
  });
  const client = await login(gateway);
  const other = await login(gateway);
  const before = rss();
  client.send(
    frontendFrame("Q", "select repeat('x', 10000), txid_current() from generate_series(1, 30000)"),
  );
  await client.bytes(1);
  client.pause();
  const { counters, output } = gateway.gateway.context.environment;
  let highest = 0;
  let mostQueued = 0;
  await pollUntil(
    () => {
      highest = Math.max(highest, rss());
      mostQueued = Math.max(mostQueued, output.usedBytes);
      return counters.slowReadersClosed === 1;
    },
    15_000,
    "the slow reader is closed",
  );
  const next = await other.query("select 'free again'");

  expect((highest - before) / MB).toBeLessThan(64);
  expect(mostQueued / MB).toBeLessThan(2);
  expect(next.rows).toEqual([["free again"]]);
  expect(await activeQueries()).toBe(0);
  expect(output.usedBytes).toBe(0);
  client.destroy();
});

test("a client that reads slowly but reads is served to the end", async () => {
  await using gateway = await testGateway(cluster, {
    sections: { gateway: "client_read_timeout = 1" },
  });
  const client = await login(gateway);
  client.send(frontendFrame("Q", "select repeat('x', 10000) from generate_series(1, 2000)"));
  const rows: number[] = [];
  for (let i = 0; i < 2_001; i++) {
    const { type, frame } = await client.message();
    if (type === "D") rows.push(frame.length);
    // The pauses add up to twice the timeout.
    if (i % 200 === 0) {
      client.pause();
      await Bun.sleep(200);
      client.resume();
    }
  }
  const { status } = await client.until("Z");

  expect(rows.length).toBe(2_000);
  expect(status).toBe("I");
});

/** In small chunks: a pause behind each row lets it be read alone. */
const SLOW_ROWS = "select repeat('x', 10000), pg_sleep(0.0001) from generate_series(1, 1000)";
const FAST_ROWS = "select repeat('x', 10000) from generate_series(1, 1000)";
const FILLERS = 6;

test("clients with unread answers together reach max_client_buffer, and the next one then queues next to nothing", async () => {
  await using gateway = await testGateway(cluster, {
    sections: {
      gateway: 'max_client_buffer = "1MB"',
      "profiles.server": `default_pool_size = ${FILLERS + 1}`,
    },
  });
  const { environment, sessions } = gateway.gateway.context;
  const { output } = environment;
  const busy = (): number => [...sessions].filter(({ isBusy }) => isBusy).length;
  /** Bytes in all queues once they grow no more. */
  const settled = async (): Promise<number> => {
    let stableSince = performance.now();
    let last = -1;
    await pollUntil(
      () => {
        if (output.usedBytes !== last) stableSince = performance.now();
        last = output.usedBytes;
        return performance.now() - stableSince > 300;
      },
      15_000,
      "nothing moves",
    );
    return last;
  };
  const ask = async (text: string): Promise<RawClient> => {
    const client = await login(gateway);
    client.send(frontendFrame("Q", text));
    await client.message();
    client.pause();
    return client;
  };

  const fillers: RawClient[] = [];
  for (let i = 0; i < FILLERS; i++) fillers.push(await ask(FAST_ROWS));
  const filled = await settled();
  const late = await ask(SLOW_ROWS);
  // The kernel's buffers are filled first.
  await pollUntil(() => output.usedBytes > filled, 15_000, "the late one queues something");
  const inAll = await settled();
  const waiting = busy();
  const clients = [...fillers, late];
  for (const client of clients) client.resume();
  const answers = await Promise.all(clients.map((client) => client.untilReady()));
  await pollUntil(() => output.usedBytes === 0, 5_000, "all is read");

  expect(filled).toBeGreaterThan(MB);
  expect(waiting).toBe(FILLERS + 1);
  // Alone it would have queued more than this before its server is not read on.
  expect(inAll - filled).toBeLessThan(CLIENT_QUEUE_MAX / 2);
  expect(answers.map(({ rows, tags }) => [rows.length, tags])).toEqual(
    clients.map(() => [1_000, ["SELECT 1000"]]),
  );
  for (const client of clients) client.terminate();
});
