// What the HTTP door refuses by size, number, path and method, and what it answers to load balancers and browsers.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { eventually, post, postQuery, postSql, rawHttp } from "./http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster, {
    sections: {
      gateway: "max_client_conn = 2",
      http: 'max_request_body = "4KB"\nmax_response_body = "64KB"\nmax_header_size = "32KB"\nallowed_origins = ["https://app.example"]',
    },
  });
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

describe("a limit", () => {
  test("of the request body is told as JSON, by length or while it is read", async () => {
    const long = "x".repeat(5_000);
    const chunked = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(JSON.stringify({ query: long })));
        controller.close();
      },
    });
    const Authorization = `Bearer ${await gateway.token()}`;

    const sql = await postSql(gateway, cluster, { query: long });
    const query = await postQuery(gateway, long);
    const streamed = await fetch(`${gateway.http}/v1/query`, {
      method: "POST",
      body: chunked,
      headers: { Authorization },
    });

    const error = {
      code: "54000",
      message: "the request body is longer than max_request_body, 4096 bytes",
    };
    expect(sql).toMatchObject({ status: 400, body: error });
    expect(query).toMatchObject({ status: 413, body: error });
    expect(streamed.status).toBe(413);
    expect(await streamed.json()).toMatchObject(error);
    expect(
      (await postSql(gateway, cluster, { query: `select '${"x".repeat(4_000)}'` })).status,
    ).toBe(200);
  });

  test("of the answer cancels the query and is told as JSON", async () => {
    const rows = (count: number) =>
      postQuery(gateway, "select repeat('x', 1000), generate_series(1, $1::int)", [`${count}`]);

    expect((await rows(60)).status).toBe(200);
    const endless = await rows(100_000_000);
    const oneRow = await postQuery(gateway, "select repeat('x', 3000000)");

    expect(endless).toMatchObject({
      status: 413,
      body: { code: "54000", message: "the answer is longer than max_response_body, 65536 bytes" },
    });
    expect(oneRow).toMatchObject({ status: 413, body: { code: "54000" } });
    await eventually(async () => {
      const active = await cluster.primary.sql(
        "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
      );
      return active.length === 0;
    });
  });

  test("of clients counts requests in flight, and a request that ends makes room", async () => {
    const held = [1, 2].map(() => postQuery(gateway, "select pg_sleep(0.5)"));
    await eventually(() => gateway.gateway.context.clients.clients === 2);

    const refused = await postQuery(gateway, "select 1");
    const refusedSql = await postSql(gateway, cluster, { query: "select 1" });
    await Promise.all(held);

    expect(refused).toMatchObject({ status: 503, body: { code: "53300", severity: "FATAL" } });
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refusedSql).toMatchObject({ status: 400, body: { code: "53300" } });
    expect((await postQuery(gateway, "select 1")).status).toBe(200);
  });

  test("of the header block is 431", async () => {
    const send = async (size: number) => {
      const response = await fetch(`${gateway.http}/health`, { headers: { X: "x".repeat(size) } });
      return response.status;
    };

    expect([await send(30_000), await send(34_000)]).toEqual([200, 431]);
  });
});

describe("a request", () => {
  test("finds its route whatever its Host says", async () => {
    const answer = await rawHttp(
      gateway,
      "GET /health HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n",
    );

    expect(answer).toStartWith("HTTP/1.1 200");
    expect(answer).toEndWith('{"status":"ok"}');
    const confused = await rawHttp(
      gateway,
      "GET /ab/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    expect(confused).toStartWith("HTTP/1.1 404");
  });

  test("to another path or with another method gets JSON", async () => {
    const status = async (path: string, method: string) => {
      const response = await fetch(`${gateway.http}${path}`, { method });
      const body: unknown = await response.json();
      return [response.status, response.headers.get("allow"), body];
    };
    const error = { code: "08P01", severity: "ERROR" };

    expect(await status("/nowhere", "GET")).toMatchObject([404, null, error]);
    expect(await status("/sql", "DELETE")).toMatchObject([405, "POST, OPTIONS, GET", error]);
    expect(await status("/v1/query", "GET")).toMatchObject([405, "POST, OPTIONS", error]);
    expect(await status("/v2", "POST")).toMatchObject([405, "GET", error]);
    expect(await status("/health", "POST")).toMatchObject([405, "GET, HEAD", error]);
  });

  test("with a body that is not what it should be is refused and not repeated", async () => {
    const Authorization = `Bearer ${await gateway.token()}`;
    for (const body of [
      "",
      "hunter2",
      '{"query":"hunter2"',
      "[]",
      '{"query":7}',
      '{"hunter2":1}',
    ]) {
      for (const [path, expected] of [
        ["/sql", 400],
        ["/v1/query", 400],
      ] as const) {
        const answer = await post(`${gateway.http}${path}`, body, { Authorization });

        expect(answer).toMatchObject({ status: expected, body: { code: "08P01" } });
        expect(JSON.stringify(answer.body)).not.toContain("hunter2");
      }
    }
  });

  test("from an allowed page may read its answer, errors too; from another it may not", async () => {
    const answerTo = (Origin: string) =>
      postSql(gateway, cluster, { query: "selec" }, { Origin }).then(({ headers }) =>
        headers.get("access-control-allow-origin"),
      );

    expect(await answerTo("https://app.example")).toBe("https://app.example");
    expect(await answerTo("https://evil.example")).toBeNull();
    const preflight = await fetch(`${gateway.http}/sql`, {
      method: "OPTIONS",
      headers: { Origin: "https://app.example", "Access-Control-Request-Method": "POST" },
    });
    expect([preflight.status, preflight.headers.get("access-control-max-age")]).toEqual([
      200,
      "86400",
    ]);
  });
});

test("answers that fill the memory for all clients fail with 53200, small ones pass, and it is given back", async () => {
  const small = await testGateway(cluster, { sections: { gateway: 'max_client_buffer = "1MB"' } });
  const rows = (count: number) =>
    postQuery(small, "select repeat('x', 1000), generate_series(1, $1::int)", [`${count}`]);
  const { output } = small.gateway.context.environment;
  expect((await rows(500)).status).toBe(200);

  const tooMuch = await rows(2_000);
  expect(tooMuch).toMatchObject({ status: 503, body: { code: "53200" } });
  expect(output.usedBytes).toBe(0);

  output.usedBytes += output.bytesMax;
  expect((await rows(200)).status).toBe(200);
  expect((await rows(300)).status).toBe(503);
  output.usedBytes -= output.bytesMax;
  await small.stop();
});

test("the gateway is ready when every database has a primary, and lives without one", async () => {
  const status = async (path: string) => {
    const response = await fetch(`${gateway.http}${path}`);
    return [response.status, await response.json()];
  };
  expect(await status("/ready")).toEqual([200, { status: "ready" }]);

  await cluster.kill("primary");
  await eventually(async () => (await status("/ready"))[0] === 503);
  expect(await status("/ready")).toEqual([503, { status: "no_primary", databases: ["app"] }]);
  expect(await status("/health")).toEqual([200, { status: "ok" }]);

  await cluster.start("primary");
  await eventually(async () => (await status("/ready"))[0] === 200);
});
