// Results far larger than any buffer on the way, over every door that streams, to clients that read slowly: each byte arrives as the server sent it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { Client } from "pg";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { encodeQuery } from "#pool/wire/frontend-messages.ts";
import { RawClient } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { eventually } from "./http-client.ts";
import { WebSocketPeer } from "./websocket-peer.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster, { tls: true });
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

/** 38 MB: the kernel's buffers on the way take 10. No two rows are equal. */
const ROW_COUNT = 4_000;
const SQL = `select repeat(md5(i::text), 300) from generate_series(1, ${ROW_COUNT}) i`;

/** What the server sends by itself: of the rows, with their frames. */
async function expected(): Promise<string> {
  const client = await RawClient.login({
    port: cluster.primary.port,
    password: cluster.passwords.app,
  });
  client.send(encodeQuery(SQL));
  const digest = await digestOf(client);
  client.terminate();
  return digest;
}

async function digestOf(client: RawClient, slow = async (): Promise<void> => {}): Promise<string> {
  const hash = createHash("sha256");
  let rowCount = 0;
  for (;;) {
    const { type, frame } = await client.message();
    if (type === "Z") break;
    if (type !== "D") continue;
    hash.update(frame);
    rowCount++;
    if (rowCount % 1_000 === 500 && rowCount < ROW_COUNT / 2) await slow();
  }
  return `${rowCount} rows, ${hash.digest("hex")}`;
}

test("over the wire, to a client that stops reading until the gateway has to wait", async () => {
  const { output } = gateway.gateway.context.environment;
  const client = await RawClient.login({
    port: gateway.postgres.port,
    password: cluster.passwords.app,
  });
  const pause = async (): Promise<void> => {
    client.pause();
    await eventually(() => output.usedBytes > 0);
    client.resume();
  };
  client.send(encodeQuery(SQL));
  await pause();

  expect(await digestOf(client, pause)).toBe(await expected());
  client.terminate();
}, 60_000);

test("over the wire in TLS", async () => {
  const client = new Client({
    host: "127.0.0.1",
    port: gateway.postgres.port,
    user: "app",
    password: cluster.passwords.app,
    database: "app",
    ssl: { rejectUnauthorized: false },
  });
  await client.connect();
  const { rows } = await client.query<[string]>({ text: SQL, rowMode: "array" });
  await client.end();

  const wrong = rows.filter(([text], index) => {
    const digest = createHash("md5")
      .update(String(index + 1))
      .digest("hex");
    return text !== digest.repeat(300);
  });
  expect([rows.length, wrong.length]).toEqual([ROW_COUNT, 0]);
}, 60_000);

test("over WebSocket", async () => {
  const plain = await testGateway(cluster);
  const peer = await WebSocketPeer.open(plain);
  await peer.logIn("app", cluster.passwords.app, "app");
  peer.send(encodeQuery(SQL));
  await peer.until("Z", 2);
  await plain.stop();

  const hash = createHash("sha256");
  const rows = peer.frames.filter(({ type }) => type === "D");
  for (const { bytes } of rows) hash.update(bytes);
  expect(`${rows.length} rows, ${hash.digest("hex")}`).toBe(await expected());
}, 60_000);
