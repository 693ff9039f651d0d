// The HTTP and WebSocket door with a certificate of its own.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Secret } from "#auth/secret.ts";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { type HttpListener, listenHttp } from "#gateway/http/listen-http.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { makeCertificate } from "#test/unit/pool/transport/certificates.ts";
import { connectionString } from "./http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;
let listener: HttpListener;
const authority = makeCertificate({ name: "walgate test authority" });
const own = makeCertificate({ name: "gateway", issuer: authority, hosts: ["127.0.0.1"] });

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster);
  const { context } = gateway.gateway;
  const tls = { certificate: own.cert, private_key: new Secret(own.key) };
  const config = { ...context.config, gateway: { ...context.config.gateway, tls } };
  listener = listenHttp({ ...context, config }, { host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await listener.stop(gateway.gateway.context.environment.clock.now() + 1_000);
  await gateway.stop();
  await cluster.stop();
});

test("another path or method is told so over TLS too", async () => {
  const statusOf = async (path: string, method: string): Promise<number> => {
    const url = `https://127.0.0.1:${listener.address.port}${path}`;
    return (await fetch(url, { method, tls: { ca: authority.cert } })).status;
  };

  expect(await statusOf("/health", "GET")).toBe(200);
  expect(await statusOf("/health", "HEAD")).toBe(200);
  expect(await statusOf("/sql", "DELETE")).toBe(405);
  expect(await statusOf("/nowhere", "GET")).toBe(404);
});

test("a query runs over TLS", async () => {
  const response = await fetch(`https://127.0.0.1:${listener.address.port}/sql`, {
    method: "POST",
    body: JSON.stringify({ query: "select 1 as one" }),
    headers: { "Neon-Connection-String": connectionString(cluster) },
    tls: { ca: authority.cert },
  });

  expect(await response.json()).toMatchObject({ rows: [{ one: 1 }] });
});

test("a WebSocket opens over TLS", async () => {
  const socket = new WebSocket(`wss://127.0.0.1:${listener.address.port}/v2`, {
    tls: { ca: authority.cert },
  });
  const opened = await new Promise<boolean>((resolve) => {
    socket.addEventListener("open", () => resolve(true));
    socket.addEventListener("error", () => resolve(false));
  });

  expect(opened).toBe(true);
  socket.close();
});

test("nothing is answered without TLS", async () => {
  const outcome = await fetch(`http://127.0.0.1:${listener.address.port}/health`).then(
    ({ status }) => status,
    () => "refused",
  );

  expect(outcome).not.toBe(200);
});
