// What the example Worker, in real workerd, answers to requests that it refuses and to gateways that refuse it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { type RunningWorker, startWorker } from "../../../wrangler-compat/testing/start-worker.ts";
import { type BundledWorker, bundleWorker } from "./bundle.ts";

/** 4,000 bytes, in half as many characters. */
const LARGEST = "é".repeat(2_000);

let bundled: BundledWorker;
let cluster: Cluster;
let gateway: TestGateway;
let worker: RunningWorker;

beforeAll(async () => {
  bundled = await bundleWorker();
  cluster = await testCluster({ replicas: 0 });
  await cluster.primary.sql(`
    create table notes (
      id integer generated always as identity primary key,
      body text not null check (body <> 'forbidden')
    );
    alter table notes owner to app`);
  gateway = await testGateway(cluster);
  worker = await start(gateway.http, await gateway.token());
});
afterAll(async () => {
  await worker?.stop();
  await gateway?.stop();
  await cluster?.stop();
});

function start(url: string, token: string): Promise<RunningWorker> {
  return startWorker({ ...bundled, bindings: { WALGATE_URL: url, WALGATE_TOKEN: token } });
}

interface Said {
  readonly status: number;
  readonly body: unknown;
}

async function say(
  to: RunningWorker,
  method: string,
  path: string,
  body?: string | ReadableStream,
): Promise<Said & { readonly headers: Headers }> {
  const response = await fetch(new URL(path, to.url), {
    method,
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, body: await response.json(), headers: response.headers };
}

function error(status: number, message: string): Said {
  return { status, body: { error: message } };
}

describe("the Worker", () => {
  test("stores a note and lists it, for no cache to keep", async () => {
    const written = await say(worker, "POST", "/notes", "  it's 'quoted' — and trimmed \n");
    const listed = await say(worker, "GET", "/notes");

    const note = { id: 1, body: "it's 'quoted' — and trimmed" };
    expect([written.status, written.body]).toEqual([201, note]);
    expect([listed.status, listed.body]).toEqual([200, [note]]);
    expect(listed.headers.get("Cache-Control")).toBe("no-store");
    expect(listed.headers.has("Set-Cookie")).toBe(false);
  });

  test.each([
    ["another path", "GET", "/", undefined, error(404, "there is only /notes")],
    ["a path below", "GET", "/notes/1", undefined, error(404, "there is only /notes")],
    ["another method", "DELETE", "/notes", undefined, error(405, "/notes takes GET and POST")],
    ["no text", "POST", "/notes", "", error(400, "a note must not be empty")],
    ["white space", "POST", "/notes", " \n", error(400, "a note must not be empty")],
    [
      "a text that PostgreSQL cannot hold",
      "POST",
      "/notes",
      "a\0b",
      error(400, "the database does not take this note"),
    ],
    [
      "a text that the table refuses",
      "POST",
      "/notes",
      "forbidden",
      error(400, "the database does not take this note"),
    ],
    [
      "one byte too many",
      "POST",
      "/notes",
      `${LARGEST}a`,
      error(413, "a note has at most 4000 bytes"),
    ],
  ])("refuses %s", async (_, method, path, body, expected) => {
    const { headers, ...said } = await say(worker, method, path, body);

    expect(said).toEqual(expected);
    expect(headers.get("Allow")).toBe(expected.status === 405 ? "GET, POST" : null);
  });

  test("takes a note of the largest size", async () => {
    expect(await say(worker, "POST", "/notes", LARGEST)).toMatchObject({
      status: 201,
      body: { body: LARGEST },
    });
  });

  test("refuses a note whose length it is not told before it reads it", async () => {
    const parts = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("a note"));
        controller.close();
      },
    });

    const { headers: _, ...said } = await say(worker, "POST", "/notes", parts);

    expect(said).toEqual(error(411, "the length of the note must be known"));
  });
});

describe("a Worker whose gateway", () => {
  test("does not know its credential says nothing of that to visitors, and the reason to its log", async () => {
    const credential = await gateway.token({}, -3_600);
    const stranger = await start(gateway.http, credential);
    try {
      const { headers: _, ...said } = await say(stranger, "GET", "/notes");

      expect(said).toEqual(error(500, "the notes cannot be used now"));
      expect(stranger.log()).toContain("28000 DatabaseError");
      expect(stranger.log()).not.toContain(credential);
    } finally {
      await stranger.stop();
    }
  });

  test.each([
    [
      "is busy",
      Response.json({ code: "53300", message: "too many wait" }, { status: 503 }),
      error(503, "the database is busy; try again"),
      "1",
    ],
    [
      "is a web page",
      new Response("<html>", { headers: { "Content-Type": "text/html" } }),
      error(502, "the database does not answer"),
      null,
    ],
  ])("%s says so", async (_, answer, expected, retryAfter) => {
    using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => answer });
    const unlucky = await start(server.url.href, "credential");
    try {
      const { headers, ...said } = await say(unlucky, "GET", "/notes");

      expect(said).toEqual(expected);
      expect(headers.get("Retry-After")).toBe(retryAfter);
    } finally {
      await unlucky.stop();
    }
  });
});
