// The stop of the HTTP and WebSocket door: what runs may end, what waits is told, nobody new is taken.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { testGateway } from "#test/support/test-gateway.ts";
import { eventually, postQuery } from "./http-client.ts";
import { WebSocketPeer } from "./websocket-peer.ts";

let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
});
afterAll(() => cluster.stop());

test("a request in flight ends well, an idle WebSocket is told 57P01, and the port is closed", async () => {
  const gateway = await testGateway(cluster);
  const peer = await WebSocketPeer.open(gateway);
  await peer.logIn("app", cluster.passwords.app, "app");
  const inFlight = postQuery(gateway, "select pg_sleep(0.4), 'done'");
  await eventually(() => gateway.gateway.context.clients.clients === 2);

  const stopped = gateway.stop();

  expect(await inFlight).toMatchObject({ status: 200, body: { rows: [["", "done"]] } });
  await stopped;
  expect(await peer.closed).toBe(1000);
  expect(peer.errors()).toEqual(["57P01"]);
  expect(
    await fetch(`${gateway.http}/health`).then(
      () => "open",
      () => "closed",
    ),
  ).toBe("closed");
});

test("a request that runs past the deadline is closed, and its query cancelled", async () => {
  const gateway = await testGateway(cluster);
  const inFlight = postQuery(gateway, "select pg_sleep(60)").catch(() => "closed" as const);
  await eventually(() => gateway.gateway.context.clients.clients === 1);

  await gateway.stop();

  expect(await inFlight).toBe("closed");
  await eventually(async () => {
    const active = await cluster.primary.sql(
      "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
    );
    return active.length === 0;
  });
});
