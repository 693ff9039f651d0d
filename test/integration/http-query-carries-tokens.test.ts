// POST /v1/query: its answer, and the read-after-write token on its way out, back in, and when it is not to be believed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import type { Position } from "#pool/consistency/position.ts";
import { tokenAudience } from "#pool/consistency/token-audience.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { eventually, post, postQuery, postSql } from "./http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
  await cluster.primary.sql(
    "create table item (id int primary key); alter table item owner to app",
  );
  gateway = await testGateway(cluster);
  await eventually(
    async () =>
      (await postQuery(gateway, "select 1")).headers.get("walgate-served-by") ===
      "replica:replica1",
  );
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

const positionsOf = (token: string | null): readonly Position[] => {
  const reading = gateway.gateway.context.tokens.read(token ?? "", tokenAudience("app", "app"));
  if (!reading.ok) throw new Error(reading.reason);
  return reading.positions;
};

describe("a query", () => {
  test("is answered with columns, rows as text, command and count", async () => {
    const { status, body } = await postQuery(gateway, "select $1::int as a, null as b", ["1"]);

    expect({ status, body }).toEqual({
      status: 200,
      body: {
        columns: [
          { name: "a", type: 23 },
          { name: "b", type: 25 },
        ],
        rows: [["1", null]],
        command: "SELECT",
        rowCount: 1,
      },
    });
  });

  test("that fails has the status that its SQLSTATE stands for", async () => {
    expect(await postQuery(gateway, "select 1/0")).toMatchObject({
      status: 400,
      body: { code: "22012", severity: "ERROR" },
    });
    expect(await postQuery(gateway, "select * from pg_authid")).toMatchObject({
      status: 403,
      body: { code: "42501" },
    });
  });
});

describe("a token", () => {
  test("comes with a write, goes to a replica with the next read, and comes back from there", async () => {
    const write = await postQuery(gateway, "insert into item values (1)");
    const token = write.headers.get("walgate-token") ?? "";
    expect(write.headers.get("walgate-served-by")).toBe("primary");
    expect(positionsOf(token)).toHaveLength(1);

    await eventually(async () => {
      const read = await postQuery(gateway, "select count(*) from item", [], {
        "Walgate-Token": token,
      });
      expect(read.body).toMatchObject({ rows: [["1"]] });
      expect(positionsOf(read.headers.get("walgate-token"))).toEqual(positionsOf(token));
      return read.headers.get("walgate-served-by") === "replica:replica1";
    });
  });

  test("covers what it was given as well as what was written since", async () => {
    const first = (await postQuery(gateway, "insert into item values (2)")).headers.get(
      "walgate-token",
    );
    const second = await postQuery(gateway, "insert into item values (3)", [], {
      "Walgate-Token": `${first}, ${first}`,
    });

    const [before] = positionsOf(first);
    const [after, ...more] = positionsOf(second.headers.get("walgate-token"));
    expect(more).toEqual([]);
    expect((after?.lsn ?? 0n) > (before?.lsn ?? 0n)).toBe(true);
  });

  test("is not there when nothing was written and none was given", async () => {
    const { headers } = await postQuery(gateway, "select 1");

    expect(headers.has("walgate-token")).toBe(false);
  });

  test("comes back with an error too", async () => {
    const token =
      (await postQuery(gateway, "insert into item values (4)")).headers.get("walgate-token") ?? "";

    const failed = await postQuery(gateway, "selec", [], { "Walgate-Token": token });
    const refused = await postQuery(gateway, "copy item to stdout", [], { "Walgate-Token": token });

    expect(failed.status).toBe(400);
    expect(positionsOf(failed.headers.get("walgate-token")).length).toBe(1);
    expect(positionsOf(refused.headers.get("walgate-token"))).toEqual(positionsOf(token));
  });

  test("of a batch stands behind the commit record, not inside the transaction", async () => {
    const lsnBehind = async (): Promise<bigint> => {
      const [row] = await cluster.primary.sql(
        "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text as lsn",
      );
      return BigInt(String(row?.["lsn"]));
    };

    // Something else may write in between, so one try out of many must be exact.
    await eventually(async () => {
      const { headers } = await postSql(gateway, cluster, {
        queries: [{ query: "insert into item select max(id) + 1 from item" }],
      });
      const behind = await lsnBehind();
      return positionsOf(headers.get("walgate-token"))[0]?.lsn === behind;
    });
  });

  test("of a batch leads its reader to where the batch is visible", async () => {
    await cluster.replicas[0]?.sql("select pg_wal_replay_pause()");
    const write = await postSql(gateway, cluster, {
      queries: [{ query: "insert into item values (500)" }, { query: "select 1" }],
    });
    const token = write.headers.get("walgate-token") ?? "";

    const stalled = await postQuery(gateway, "select count(*) from item where id = 500", [], {
      "Walgate-Token": token,
    });
    await cluster.replicas[0]?.sql("select pg_wal_replay_resume()");

    expect(stalled.body).toMatchObject({ rows: [["1"]] });
    expect(stalled.headers.get("walgate-served-by")).toBe("primary");
    await eventually(async () => {
      const read = await postQuery(gateway, "select count(*) from item where id = 500", [], {
        "Walgate-Token": token,
      });
      expect(read.body).toMatchObject({ rows: [["1"]] });
      return read.headers.get("walgate-served-by") === "replica:replica1";
    });
  });

  test("that does not verify sends its read to the primary and is counted", async () => {
    const { routes } = gateway.gateway.context.environment.counters;
    const before = routes.get("token_malformed") ?? 0;

    const { status, headers } = await postQuery(gateway, "select 1", [], {
      "Walgate-Token": "wg1.x",
    });

    expect({ status, servedBy: headers.get("walgate-served-by") }).toEqual({
      status: 200,
      servedBy: "primary",
    });
    expect(headers.has("walgate-token")).toBe(false);
    expect(routes.get("token_malformed")).toBe(before + 1);
  });

  test("of another tenant does not verify", async () => {
    const { tokens } = gateway.gateway.context;
    const token =
      (await postQuery(gateway, "insert into item values (6)")).headers.get("walgate-token") ?? "";
    const foreign = tokens.mint(
      [{ systemIdentifier: 1n, timeline: 1, lsn: 1n }],
      tokenAudience("app", "other"),
    );

    const own = await postQuery(gateway, "select 1", [], { "Walgate-Token": token });
    const other = await postQuery(gateway, "select 1", [], { "Walgate-Token": foreign });

    expect(own.headers.get("walgate-token")).not.toBeNull();
    expect(other.headers.get("walgate-served-by")).toBe("primary");
    expect(other.headers.has("walgate-token")).toBe(false);
  });

  test("of another history is answered by the primary with one of its own, which replicas serve again", async () => {
    const { tokens } = gateway.gateway.context;
    const written = await postQuery(gateway, "insert into item values (7)");
    const [own] = positionsOf(written.headers.get("walgate-token"));
    if (own === undefined) throw new Error("no position");
    const audience = tokenAudience("app", "app");
    const old = { systemIdentifier: 1n, timeline: 1, lsn: own.lsn };
    const later = { ...own, timeline: own.timeline + 1 };

    const fromOld = await postQuery(gateway, "select 1", [], {
      "Walgate-Token": tokens.mint([old], audience),
    });
    const fromLater = await postQuery(gateway, "select 1", [], {
      "Walgate-Token": tokens.mint([later], audience),
    });

    expect(fromOld.headers.get("walgate-served-by")).toBe("primary");
    const [reissued, ...rest] = positionsOf(fromOld.headers.get("walgate-token"));
    expect(rest).toEqual([]);
    expect(reissued).toMatchObject({
      systemIdentifier: own.systemIdentifier,
      timeline: own.timeline,
    });
    // What another gateway may know of a later timeline is not thrown away.
    expect(positionsOf(fromLater.headers.get("walgate-token"))).toContainEqual(later);
    await eventually(async () => {
      const again = await postQuery(gateway, "select 1", [], {
        "Walgate-Token": fromOld.headers.get("walgate-token") ?? "",
      });
      return again.headers.get("walgate-served-by") === "replica:replica1";
    });
  });

  test("of an untrusted profile comes from the oracle", async () => {
    await cluster.primary.sql("create table note (id int); grant all on note to app_user");
    const authorization = `Bearer ${await gateway.token({ role: "authenticated" })}`;

    const { status, headers } = await post(
      `${gateway.http}/v1/query`,
      { query: "insert into note values (1)" },
      { Authorization: authorization },
    );

    expect(status).toBe(200);
    expect(positionsOf(headers.get("walgate-token"))).toHaveLength(1);
  });
});
