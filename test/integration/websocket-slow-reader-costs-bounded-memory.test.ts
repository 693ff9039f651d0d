// A client that asks for far more than it reads: the gateway stops reading from PostgreSQL, keeps little, and ends the client in time.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { encodeQuery } from "#pool/wire/frontend-messages.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { eventually } from "./http-client.ts";
import { passwordMessage, startupPacket } from "./websocket-peer.ts";

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

/** A masked binary message (RFC 6455, "Base Framing Protocol"); the mask is zero, so the payload stays as it is. */
function maskedFrame(payload: Uint8Array): Uint8Array {
  const head = new Uint8Array([
    0x82,
    0x80 | 126,
    payload.length >> 8,
    payload.length & 0xff,
    0,
    0,
    0,
    0,
  ]);
  return Buffer.concat([head, payload]);
}

test("a reader that takes nothing costs bounded memory and is ended, with its query", async () => {
  const { context } = gateway.gateway;
  const { hostname, port } = new URL(gateway.http);
  const closed = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: { data: () => {}, close: () => closed.resolve(), error: () => closed.resolve() },
  });
  socket.write(
    "GET /v2 HTTP/1.1\r\nHost: gw\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await eventually(() => context.clients.clients === 1);
  socket.pause();
  socket.write(
    maskedFrame(
      Buffer.concat([
        startupPacket("app", "app"),
        passwordMessage(cluster.passwords.app),
        encodeQuery("select repeat('x', 1000), generate_series(1, 100000000)"),
      ]),
    ),
  );

  await eventually(() => context.environment.output.usedBytes > 0);
  expect(context.environment.output.usedBytes).toBeLessThan(4_000_000);
  await eventually(() => context.environment.counters.slowReadersClosed === 1);

  await eventually(() => context.clients.clients === 0);
  expect(context.environment.output.usedBytes).toBe(0);
  await eventually(async () => {
    const active = await cluster.primary.sql(
      "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
    );
    return active.length === 0;
  });
  socket.resume();
  await closed.promise;
}, 20_000);
