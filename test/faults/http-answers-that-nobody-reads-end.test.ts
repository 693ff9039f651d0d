// Large answers over HTTP: whole for who reads them, counted until they are read, and ended where nobody does.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const LENGTH = 30_000_000;
const LARGE = { query: `select repeat('x', ${LENGTH / 10}) from generate_series(1, 10)` };

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster, { sections: { gateway: "client_read_timeout = 1" } });
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

/** Sends the request and reads nothing. */
async function unread(): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port: Number(new URL(gateway.http).port) });
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.pause();
  const body = JSON.stringify(LARGE);
  const authorization = `Bearer ${await gateway.token()}`;
  socket.write(
    `POST /v1/query HTTP/1.1\r\nHost: gw\r\nAuthorization: ${authorization}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return socket;
}

const counted = () => {
  const { environment, clients } = gateway.gateway.context;
  return { bytes: environment.output.usedBytes, clients: clients.clients };
};

test("an answer is counted while it is not read, and ends with client_read_timeout", async () => {
  const sockets = await Promise.all([unread(), unread(), unread()]);
  await pollUntil(async () => counted().bytes >= 3 * LENGTH, 10_000, "three answers");
  expect(counted().clients).toBe(3);

  await pollUntil(async () => counted().clients === 0, 10_000, "the end of the answers");

  expect(counted()).toEqual({ bytes: 0, clients: 0 });
  for (const socket of sockets) socket.destroy();
});

test("an answer whose client goes is forgotten", async () => {
  const socket = await unread();
  await pollUntil(async () => counted().bytes >= LENGTH, 10_000, "the answer");

  socket.destroy();

  await pollUntil(async () => counted().clients === 0, 10_000, "the end of the answer");
  expect(counted().bytes).toBe(0);
});

test("an answer that is read comes whole", async () => {
  const response = await fetch(`${gateway.http}/v1/query`, {
    method: "POST",
    headers: { Authorization: `Bearer ${await gateway.token()}` },
    body: JSON.stringify(LARGE),
  });
  const body: unknown = await response.json();

  expect(body).toMatchObject({ rowCount: 10 });
  expect(JSON.stringify(body).length).toBeGreaterThan(LENGTH);
  await pollUntil(async () => counted().clients === 0, 5_000, "the end of the answer");
});

test("a stop lets an answer that is being read come to its end", async () => {
  const other = await testGateway(cluster);
  const response = await fetch(`${other.http}/v1/query`, {
    method: "POST",
    headers: { Authorization: `Bearer ${await other.token()}` },
    body: JSON.stringify(LARGE),
  });
  const stopped = other.stop();

  const text = await response.text();

  expect(text.endsWith('"rowCount":10}')).toBe(true);
  await stopped;
});
