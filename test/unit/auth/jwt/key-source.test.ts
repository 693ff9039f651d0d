// Unit tests of auth/jwt/key-source.ts with a fake issuer and a fake clock.
import { describe, expect, test } from "bun:test";
import {
  findJwksUrlProblem,
  JWKS_ASK_FIRST_AFTER_MS,
  JWKS_BODY_BYTES_MAX,
  JWKS_COOLDOWN_MS,
  JWKS_REFRESH_AFTER_MS,
  JWKS_STALE_MAX_MS,
  RemoteKeySource,
} from "#auth/jwt/key-source.ts";
import { FakeIssuer } from "#test/unit/auth/support/issuer-server.ts";
import { createTestKey, NOW_MS } from "#test/unit/auth/support/tokens.ts";

const old = (await createTestKey("ES256", "old")).jwk;
const fresh = (await createTestKey("ES256", "new")).jwk;

function setUp(keys: readonly unknown[] = [old]) {
  const issuer = new FakeIssuer(keys);
  const clock = { nowMs: NOW_MS };
  const timeout = new AbortController();
  const source = new RemoteKeySource({
    url: "https://issuer.example/keys",
    fetch: issuer.fetch,
    nowMs: () => clock.nowMs,
    createTimeoutSignal: () => timeout.signal,
  });
  const find = async (kid: string): Promise<string> => {
    const result = await source.find("ES256", kid);
    return result.ok ? "found" : result.reason;
  };
  return { issuer, clock, timeout, source, find };
}

/** Lets a refresh that nobody waits for come to its end. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
}

describe("RemoteKeySource", () => {
  test("the first lookups share one request, which follows no redirect", async () => {
    const { issuer, find } = setUp();

    expect(await Promise.all([find("old"), find("old"), find("new")])).toEqual([
      "found",
      "found",
      "unknown_key",
    ]);
    expect(issuer.requests).toEqual([{ url: "https://issuer.example/keys", redirect: "manual" }]);
  });

  test("a new key is accepted once the cool-down is over, and asked for once", async () => {
    const { issuer, clock, find } = setUp();
    await find("old");
    issuer.publish([old, fresh]);

    clock.nowMs += JWKS_COOLDOWN_MS - 1;
    const during = await find("new");
    clock.nowMs += 1;
    const after = await Promise.all([find("new"), find("new")]);

    expect([during, ...after]).toEqual(["unknown_key", "found", "found"]);
    expect(issuer.requests.length).toBe(2);
  });

  test("a flood of unknown ids during an outage asks once per cool-down", async () => {
    const { issuer, clock, find } = setUp();
    await find("old");
    issuer.goDown();
    clock.nowMs += JWKS_COOLDOWN_MS;

    const results = [];
    for (let index = 0; index < 20; index += 1) {
      results.push(await find(`made-up-${index}`));
      clock.nowMs += JWKS_COOLDOWN_MS / 10;
    }

    expect(new Set(results)).toEqual(new Set(["keys_unavailable"]));
    expect(issuer.requests.length).toBe(3);
  });

  test("an issuer that was never reached is asked once per cool-down", async () => {
    const { issuer, clock, find } = setUp();
    issuer.goDown();

    const first = [await find("old"), await find("old")];
    issuer.publish([old]);
    clock.nowMs += JWKS_COOLDOWN_MS;

    expect([...first, await find("old")]).toEqual([
      "keys_unavailable",
      "keys_unavailable",
      "found",
    ]);
    expect(issuer.requests.length).toBe(2);
  });

  test("a set older than 10 minutes is used and refreshed behind", async () => {
    const { issuer, clock, source, find } = setUp();
    await find("old");
    issuer.publish([fresh]);

    clock.nowMs += JWKS_REFRESH_AFTER_MS;
    await find("old");
    const requestsBefore = issuer.requests.length;
    clock.nowMs += 1;
    const used = await find("old");
    await settle();

    expect([requestsBefore, used, issuer.requests.length]).toEqual([1, "found", 2]);
    expect([await find("new"), await find("old"), source.usableGeneration()]).toEqual([
      "found",
      "unknown_key",
      2,
    ]);
  });

  test("asking for the generation alone starts the refresh that is due", async () => {
    const { issuer, clock, source, find } = setUp();
    await find("old");
    clock.nowMs += JWKS_REFRESH_AFTER_MS + 1;

    const generation = source.usableGeneration();
    await settle();

    expect([generation, issuer.requests.length]).toEqual([1, 2]);
  });

  test("a key that was removed while nobody asked is not accepted after 20 minutes", async () => {
    const { issuer, clock, source, find } = setUp();
    await find("old");
    issuer.publish([fresh]);
    clock.nowMs += JWKS_ASK_FIRST_AFTER_MS + 1;

    expect(source.usableGeneration()).toBeUndefined();
    expect(await find("old")).toBe("unknown_key");
  });

  test("the same id with another key counts as another set", async () => {
    const { issuer, clock, source, find } = setUp();
    await find("old");
    issuer.publish([{ ...fresh, kid: "old" }]);
    clock.nowMs += JWKS_ASK_FIRST_AFTER_MS + 1;
    await find("old");

    expect(source.usableGeneration()).toBe(2);
  });

  test("the same keys again keep the generation", async () => {
    const { clock, source, find } = setUp();
    await find("old");
    clock.nowMs += JWKS_ASK_FIRST_AFTER_MS + 1;
    await find("old");

    expect(source.usableGeneration()).toBe(1);
  });

  test("known keys outlive an outage of up to 24 hours", async () => {
    const { issuer, clock, source, find } = setUp();
    await find("old");
    issuer.goDown();

    clock.nowMs += JWKS_STALE_MAX_MS;
    const last = [await find("old"), source.usableGeneration()];
    await settle();
    clock.nowMs += 1;
    const after = [await find("old"), source.usableGeneration()];

    expect([last, after]).toEqual([
      ["found", 1],
      ["keys_unavailable", undefined],
    ]);
  });

  test("during an outage known keys are found without waiting for the issuer", async () => {
    const { issuer, clock, find } = setUp();
    await find("old");
    issuer.goDown();
    clock.nowMs += JWKS_ASK_FIRST_AFTER_MS + 1;
    await find("old");
    clock.nowMs += JWKS_COOLDOWN_MS;
    issuer.answer = () => new Promise(() => {});

    expect(await find("old")).toBe("found");
    expect(issuer.requests.length).toBe(3);
  });

  test("a request that gets no answer in time is given up", async () => {
    const { issuer, timeout, find } = setUp();
    issuer.answer = () => new Promise(() => {});

    const result = find("old");
    timeout.abort(new Error("timeout"));

    expect(await result).toBe("keys_unavailable");
  });

  test("a body of 64 KiB is read and a larger one is not", async () => {
    const document = JSON.stringify({ keys: [old] });
    const read = (size: number): Promise<string> => {
      const { issuer, find } = setUp();
      issuer.answer = () => new Response(document.padEnd(size, " "));
      return find("old");
    };

    expect(await read(JWKS_BODY_BYTES_MAX)).toBe("found");
    expect(await read(JWKS_BODY_BYTES_MAX + 1)).toBe("keys_unavailable");
  });

  test("a body without end is given up at the maximum", async () => {
    const { issuer, find } = setUp();
    let sentBytes = 0;
    let isCancelled = false;
    issuer.answer = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sentBytes += 16_384;
            controller.enqueue(new Uint8Array(16_384).fill(32));
          },
          cancel() {
            isCancelled = true;
          },
        }),
      );

    expect(await find("old")).toBe("keys_unavailable");
    expect(isCancelled).toBe(true);
    expect(sentBytes).toBeLessThan(4 * JWKS_BODY_BYTES_MAX);
  });

  test.each([
    [
      "a redirect",
      () => new Response(null, { status: 302, headers: { location: "https://evil.example" } }),
    ],
    ["an error page", () => Response.json({ keys: [old] }, { status: 500 })],
    ["text that is not JSON", () => new Response("<html>")],
    ["bytes that are not UTF-8", () => new Response(new Uint8Array([0xff]))],
    ["no usable key", () => Response.json({ keys: [{ kty: "oct", k: "AAAA" }] })],
    ["too many keys", () => Response.json({ keys: Array.from({ length: 101 }, () => old) })],
  ])("%s is as good as no answer", async (_name, answer) => {
    const { issuer, find } = setUp();
    issuer.answer = answer;

    expect(await find("old")).toBe("keys_unavailable");
    expect(issuer.requests.length).toBe(1);
  });
});

test.each([
  ["https://issuer.example/keys", undefined],
  ["http://localhost:8080/keys", undefined],
  ["http://127.0.0.1/keys", undefined],
  ["http://[::1]:1/keys", undefined],
  ["http://issuer.example/keys", "may use http: only for a loopback host"],
  ["http://127.0.0.1.example/keys", "may use http: only for a loopback host"],
  ["http://localhost.example/keys", "may use http: only for a loopback host"],
  ["https://user:secret@issuer.example/", "must not contain credentials"],
  ["file:///etc/passwd", "must be an https: URL"],
  ["keys.json", "is not a URL"],
])("the URL %p has the problem %p", (url, problem) => {
  expect(findJwksUrlProblem(url)).toBe(problem);
});
