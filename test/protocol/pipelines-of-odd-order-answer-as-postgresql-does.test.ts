// Pipelines in orders that few drivers use: each is answered as PostgreSQL itself answers it, and none hangs or keeps its connection.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { RawClient, bind, execute, frontendFrame, parse, sync } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 1 });
  await cluster.primary.sql("create table t (a int); alter table t owner to app");
  gateway = await testGateway(cluster);
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

const query = (text: string): Uint8Array => frontendFrame("Q", text);
const INSERT = "insert into t values (1)";

/** Messages, and how many times the server is ready behind them. */
const PIPELINES: readonly (readonly [string, readonly Uint8Array[], number])[] = [
  [
    "a Bind of the segment before, behind an unanswered Parse",
    [parse("s1", INSERT), sync, parse("s2", INSERT), bind("s1"), execute(), sync],
    2,
  ],
  [
    "the same inside a transaction begun by a simple Query",
    [query("begin"), parse("s1", INSERT), sync, parse("s2", INSERT), bind("s1"), execute(), sync],
    3,
  ],
  [
    "the unnamed statement used on, behind an unanswered Parse",
    [parse("", INSERT), bind(""), execute(), sync, parse("n", INSERT), bind(""), execute(), sync],
    2,
  ],
  ["an Execute without portal, then a Query", [execute(), query("select 1"), sync], 1],
  [
    "a failing Execute, then a Query before the Sync",
    [parse("", "select 1/0"), bind(""), execute(), query("select 1"), sync],
    1,
  ],
  [
    "a sound Execute, then a Query before the Sync",
    [parse("", "select 1"), bind(""), execute(), query("select 2"), sync],
    2,
  ],
];

async function answersOf(
  port: number,
  frames: readonly Uint8Array[],
  readyCount: number,
): Promise<unknown> {
  const client = await RawClient.login({ port, user: "app", password: cluster.passwords.app });
  client.send(...frames);
  const answers: unknown[] = [];
  for (let i = 0; i < readyCount; i++) {
    const { rows, tags, errors, types, status } = await client.untilReady();
    answers.push({ rows, tags, errors, types, status });
  }
  client.terminate();
  return answers;
}

test.each(PIPELINES)("%s", async (_, frames, readyCount) => {
  const direct = await answersOf(cluster.primary.port, frames, readyCount);

  expect(await answersOf(gateway.postgres.port, frames, readyCount)).toEqual(direct);
});
