// The protocol through the gateway: large large messages, pipelines and cancel.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import {
  RawClient,
  bind,
  execute,
  frontendFrame,
  int32,
  parse,
  sendCancel,
  sync,
} from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
  gateway = await testGateway(cluster, {
    sections: { "profiles.server": "default_pool_size = 2" },
  });
  await cluster.primary.sql(
    "create table notes (id int, body text); alter table notes owner to app",
  );
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

function login(
  to = gateway,
  parameters: Readonly<Record<string, string>> = {},
): Promise<RawClient> {
  return RawClient.login({ port: to.postgres.port, password: cluster.passwords.app, parameters });
}

const statement = (text: string): Uint8Array => concatBytes([parse("", text), bind(""), execute()]);

describe("large messages", () => {
  const TEN_MB = "x".repeat(10_000_000);

  test.each([
    ["a simple Query", frontendFrame("Q", `select length('${TEN_MB}')`)],
    ["a Parse", concatBytes([statement(`select length('${TEN_MB}')`), sync])],
    ["a Bind", concatBytes([parse("", "select length($1)"), bind("", TEN_MB), execute(), sync])],
    [
      "a Bind of a named statement",
      concatBytes([parse("large", "select length($1)"), bind("large", TEN_MB), execute(), sync]),
    ],
  ])("%s of 10 MB is carried out, and the next query too", async (_, bytes) => {
    const client = await login();
    client.send(bytes);
    const { rows, errors } = await client.untilReady();
    const next = await client.query("select 'next'");
    client.terminate();

    expect(errors).toEqual([]);
    expect([...rows, ...next.rows]).toEqual([["10000000"], ["next"]]);
  });

  test("CopyData messages of 5 MB are passed on", async () => {
    const client = await login();
    client.send(frontendFrame("Q", "copy notes (body) from stdin"));
    await client.until("G");
    const line = new TextEncoder().encode(`${"y".repeat(4_999_999)}\n`);
    for (let i = 0; i < 3; i++) client.send(frontendFrame("d", line));
    client.send(frontendFrame("c"));
    const copied = await client.untilReady();
    const { rows } = await client.query("select length(body) from notes; truncate notes");
    client.terminate();

    expect(copied.tags).toEqual(["COPY 3"]);
    expect(rows).toEqual([["4999999"], ["4999999"], ["4999999"]]);
  });

  test("a row of 20 MB arrives whole, also in pieces of any size", async () => {
    const client = await login();
    const { rows } = await client.query("select repeat('z', 20000000)");
    client.terminate();

    expect(rows[0]?.[0]?.length).toBe(20_000_000);
    expect(/^z+$/.test(rows[0]?.[0] ?? "")).toBe(true);
  });

  test("a message as long as max_packet_size passes, and a longer one closes its client with 08P01 at its header", async () => {
    await using small = await testGateway(cluster, {
      sections: { gateway: 'max_packet_size = "64KB"' },
    });
    const sized = (size: number): Uint8Array =>
      frontendFrame("Q", `select 'ok', ${" ".repeat(size - 5 - 1 - "select 'ok', 1".length)}1`);
    const client = await login(small);
    const other = await login(small);

    client.send(sized(65_536));
    const passed = await client.untilReady();
    client.send(sized(65_537).subarray(0, 5));
    const refused = await client.rest();
    const others = await other.query("select 'other'");
    other.terminate();

    expect(passed.rows).toEqual([["ok", "1"]]);
    expect(refused).toMatchObject({ types: "E", errors: ["08P01"] });
    expect(others.rows).toEqual([["other"]]);
  });

  test.each([
    ["a length of 1 GB and more", concatBytes([new TextEncoder().encode("Q"), int32(0x7fffffff)])],
    ["a negative length", concatBytes([new TextEncoder().encode("Q"), int32(-1)])],
    ["a length below 4", concatBytes([new TextEncoder().encode("Q"), int32(3)])],
    ["an unknown type", frontendFrame("y", "what")],
  ])("a message with %s closes its client with 08P01 and nobody else", async (_, bytes) => {
    const client = await login();
    const before = process.memoryUsage.rss();
    client.send(bytes);
    const { errors } = await client.rest();
    const other = await login();
    const { rows } = await other.query("select 1");
    other.terminate();

    expect(errors).toEqual(["08P01"]);
    expect(rows).toEqual([["1"]]);
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 ** 2);
  });
});

test.each([
  ["without its end", frontendFrame("Q", new TextEncoder().encode("select 1"))],
  ["with a NUL inside", frontendFrame("Q", "select 1\0; select 2")],
])(
  "a Query %s is answered 08P01, as PostgreSQL does, and the session goes on",
  async (_, bytes) => {
    const client = await login();
    client.send(bytes);
    const refused = await client.untilReady();
    const { rows } = await client.query("select 1");
    client.terminate();

    expect(refused).toEqual({ rows: [], tags: [], errors: ["08P01"], types: "EZ", status: "I" });
    expect(rows).toEqual([["1"]]);
  },
);

describe("pipelines", () => {
  test("of several Syncs are answered segment by segment, an error ends its own segment only", async () => {
    const client = await login();
    client.send(
      statement("select 1"),
      statement("select 2"),
      sync,
      statement("select 3"),
      statement("select 1/0"),
      statement("select 'skipped'"),
      sync,
      statement("select 4"),
      sync,
      sync,
    );
    const { rows, errors, types } = await client.untilReady(4);
    client.terminate();

    expect(rows).toEqual([["1"], ["2"], ["3"], ["4"]]);
    expect(errors).toEqual(["22012"]);
    expect(types).toBe("12DC12DCZ12DC1EZ12DCZZ");
  });

  test("read what they wrote, one segment or one statement later", async () => {
    const client = await login();
    const seen: unknown[] = [];
    for (let i = 0; i < 50; i++) {
      client.send(
        statement(`insert into notes values (${i}, 'n')`),
        sync,
        statement(`select count(*) from notes where id = ${i}`),
        sync,
        frontendFrame("Q", `select 'q', count(*) from notes where id = ${i}`),
        statement(`delete from notes where id = ${i}`),
        statement(`select 'd', count(*) from notes where id = ${i}`),
        sync,
      );
    }
    for (let i = 0; i < 50; i++) seen.push((await client.untilReady(4)).rows);
    client.terminate();

    expect(seen).toEqual(Array.from({ length: 50 }, () => [["1"], ["q", "1"], ["d", "0"]]));
  });

  test("torn at every byte are understood", async () => {
    const client = await login();
    const bytes = concatBytes([statement("select 'torn'"), sync, frontendFrame("Q", "select 2")]);
    const answers: unknown[] = [];
    for (let cut = 1; cut < bytes.length; cut++) {
      await client.sent(bytes.subarray(0, cut));
      await client.sent(bytes.subarray(cut));
      answers.push((await client.untilReady(2)).rows);
    }
    client.terminate();

    expect(answers).toEqual(Array.from({ length: bytes.length - 1 }, () => [["torn"], ["2"]]));
  });

  test("of 5,000 segments in one piece are answered in order", async () => {
    const client = await login();
    const segments = Array.from({ length: 5_000 }, (_, i) => [statement(`select ${i}`), sync]);
    client.send(...segments.flat());
    const { rows } = await client.untilReady(5_000);
    client.terminate();

    expect(rows.map(([value]) => Number(value))).toEqual(
      Array.from({ length: 5_000 }, (_, i) => i),
    );
  });

  test("with Flush get answers before a Sync", async () => {
    const client = await login();
    client.send(statement("select 'flushed'"), frontendFrame("H"));
    const { rows } = await client.until("C");
    client.send(sync);
    const { status } = await client.untilReady();
    client.terminate();

    expect([rows, status]).toEqual([[["flushed"]], "I"]);
  });
});

describe("cancel", () => {
  test("reaches the statement that runs, and a wrong key or a late one reaches nobody", async () => {
    const { port } = gateway.postgres;
    const [client, other] = [await login(), await login()];
    const wrong = client.secretKey.map((byte) => byte ^ 1);
    client.send(frontendFrame("Q", "select txid_current(), pg_sleep(0.4)"));
    other.send(frontendFrame("Q", "select txid_current(), pg_sleep(60)"));
    await pollUntil(async () => (await sleepers()) === 2, 5_000, "both sleep");
    await sendCancel(port, client.processId, wrong);
    await sendCancel(port, client.processId + 1_000, client.secretKey);
    const undisturbed = await client.untilReady();
    await sendCancel(port, client.processId, client.secretKey);
    await sendCancel(port, other.processId, other.secretKey);
    const canceled = await other.untilReady();
    const next = [await client.query("select 1"), await other.query("select 2")];
    client.terminate();
    other.terminate();

    expect(undisturbed.errors).toEqual([]);
    expect(canceled.errors).toEqual(["57014"]);
    expect(next.map(({ rows }) => rows)).toEqual([[["1"]], [["2"]]]);
  });

  test("sent again and again never hits a later statement of anybody", async () => {
    const { port } = gateway.postgres;
    const [target, ...others] = [await login(), await login(), await login()] as const;
    const errors: string[] = [];
    const work = others.map(async (client) => {
      for (let i = 0; i < 60; i++) {
        const answer = await client.query("select txid_current(), pg_sleep(0.001)");
        errors.push(...answer.errors);
      }
    });
    for (let i = 0; i < 100; i++) {
      target.send(frontendFrame("Q", "select txid_current()"));
      await sendCancel(port, target.processId, target.secretKey);
      await target.untilReady();
    }
    await Promise.all(work);
    for (const client of [target, ...others]) client.terminate();

    expect(errors).toEqual([]);
  });

  test("with wrong keys is not even looked at after ten of them, until time has passed", async () => {
    const { cancels } = gateway.gateway.context;
    const client = await login();
    const { processId, secretKey } = client;
    const wrong = { processId, secretKey: secretKey.map((byte) => byte ^ 1) };
    const outcomes: string[] = [];
    for (let i = 0; i < 11; i++) outcomes.push(cancels.request(wrong, "192.0.2.1"));
    const right = cancels.request({ processId, secretKey }, "192.0.2.1");
    const elsewhere = cancels.request({ processId, secretKey }, "192.0.2.2");
    client.terminate();

    expect(outcomes).toEqual([...Array<string>(10).fill("wrong_key"), "rate_limited"]);
    expect([right, elsewhere]).toEqual(["rate_limited", "canceled"]);
  });
});

async function sleepers(): Promise<number> {
  const rows = await cluster.primary.sql(
    "select from pg_stat_activity where state = 'active' and query like 'select txid_current(), pg_sleep%'",
  );
  return rows.length;
}
