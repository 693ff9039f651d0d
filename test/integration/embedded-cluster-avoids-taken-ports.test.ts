// Ports of the local cluster: a taken one is passed over, and a server keeps the one it has.
import { expect, test } from "bun:test";
import { findFreePort } from "#gateway/embedded/free-port.ts";
import { PortTakenError } from "#gateway/embedded/server-process.ts";
import { testCluster } from "#test/support/shared-cluster.ts";

test("a cluster that is told where to begin passes over a taken port", async () => {
  const first = await findFreePort(undefined, new Set());
  using _taken = holdPort(first);

  await using cluster = await testCluster({ replicas: 1, portFrom: first });

  const ports = [cluster.primary, ...cluster.replicas].map((node) => node.port);
  expect(Math.min(...ports)).toBeGreaterThan(first);
  expect(new Set(ports).size).toBe(2);
});

test("a server whose own port is taken does not move to another one", async () => {
  await using cluster = await testCluster({ replicas: 0 });
  await cluster.stopServer("primary", "fast");
  using taken = holdPort(cluster.primary.port);

  const refusal: unknown = await cluster.start("primary").catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(PortTakenError);

  taken[Symbol.dispose]();
  await cluster.start("primary");
  expect(await cluster.primary.sql("SELECT 1 AS id")).toEqual([{ id: 1 }]);
});

test("a port is sought in a span, not for ever", async () => {
  const from = 30_000;
  const taken = new Set(Array.from({ length: 100 }, (_, index) => from + index));

  const refusal: unknown = await findFreePort(from, taken).catch((error: unknown) => error);
  expect(refusal).toHaveProperty("message", "no free port on 127.0.0.1 in 100 attempts");
});

function holdPort(port: number): Disposable {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port,
    socket: { data: () => undefined },
  });
  return { [Symbol.dispose]: () => listener.stop(true) };
}
