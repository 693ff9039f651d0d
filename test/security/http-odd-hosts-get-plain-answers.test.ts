// A Host header that makes no URL: the answer is ours, as JSON, and no page of a library's.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster);
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

async function statusOf(host: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port: Number(new URL(gateway.http).port) });
  socket.write(`GET /nothing HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  return text;
}

test.each(["a b", "h:99999999", "user:pw@h", "[::1"])(
  "Host %p is answered in JSON",
  async (host) => {
    const answer = await statusOf(host);

    expect(answer).toMatch(/^HTTP\/1\.1 40\d /);
    expect(answer).not.toContain("Invalid URL");
  },
);
