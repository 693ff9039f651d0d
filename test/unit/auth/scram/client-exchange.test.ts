// Unit tests of auth/scram/client-exchange.ts: an honest server, and servers that lie.
import { describe, expect, test } from "bun:test";
import { ScramClientExchange, ScramError } from "#auth/scram/client-exchange.ts";
import { ScramKeyCache } from "#auth/scram/key-cache.ts";
import { SCRAM_ITERATIONS_MAX } from "#auth/scram/messages.ts";
import { deriveScramKeys } from "#auth/scram/verifier.ts";
import { Secret } from "#auth/secret.ts";
import { createClient, fixedBytes, toBytes, toText } from "#test/unit/auth/support/scram.ts";

const NONCE = Buffer.alloc(18, 1).toString("base64");
const BOTH = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"];

async function errorOf(action: () => unknown): Promise<unknown> {
  try {
    await action();
  } catch (error) {
    if (error instanceof ScramError) {
      return { sqlState: error.sqlState, reason: error.reason, message: error.message };
    }
    throw error;
  }
  return undefined;
}

describe("mechanism", () => {
  const binding = new Uint8Array(32).fill(9);

  test.each([
    [
      "without a binding, SCRAM-SHA-256 is used and n sent",
      BOTH,
      undefined,
      "SCRAM-SHA-256",
      "n,,",
    ],
    [
      "with a binding, -PLUS is used where it is offered",
      BOTH,
      binding,
      "SCRAM-SHA-256-PLUS",
      "p=tls-server-end-point,,",
    ],
    ["with a binding and no offer, y is sent", ["SCRAM-SHA-256"], binding, "SCRAM-SHA-256", "y,,"],
  ])("%s", (_name, mechanisms, channelBinding, mechanism, header) => {
    const started = createClient("pencil", channelBinding).start(mechanisms);

    expect({ mechanism: started.mechanism, message: toText(started.message) }).toEqual({
      mechanism,
      message: `${header}n=,r=${NONCE}`,
    });
  });

  test.each([[[]], [["OAUTHBEARER"]], [["SCRAM-SHA-256-PLUS"]]])(
    "an offer of %p without a binding is refused",
    async (mechanisms) => {
      expect(await errorOf(() => createClient().start(mechanisms))).toEqual({
        sqlState: "28000",
        reason: "mechanism",
        message: "server offers no SASL mechanism that is supported",
      });
    },
  );

  test("with -PLUS, the certificate's hash goes into client-final", async () => {
    const client = createClient("pencil", binding);
    client.start(BOTH);

    const final = toText(await client.continue(toBytes(`r=${NONCE}x,s=AAAA,i=1`)));

    const bound = Buffer.concat([Buffer.from("p=tls-server-end-point,,"), binding]);
    expect(final.startsWith(`c=${bound.toString("base64")},r=${NONCE}x,p=`)).toBe(true);
  });
});

describe("a server that lies", () => {
  test.each([
    ["does not extend our nonce", `r=${NONCE},s=AAAA,i=1`, "nonce"],
    ["sends another nonce", `r=x${NONCE},s=AAAA,i=1`, "nonce"],
    ["sends no salt", `r=${NONCE}x,i=1`, "malformed"],
    ["sends a salt that is not base64", `r=${NONCE}x,s=A,i=1`, "malformed"],
    ["sends no iterations", `r=${NONCE}x,s=AAAA`, "malformed"],
    ["sends zero iterations", `r=${NONCE}x,s=AAAA,i=0`, "iterations"],
    [
      "asks for too many iterations",
      `r=${NONCE}x,s=AAAA,i=${SCRAM_ITERATIONS_MAX + 1}`,
      "iterations",
    ],
    ["sends a mandatory extension", `m=x,r=${NONCE}x,s=AAAA,i=1`, "malformed"],
    ["sends more attributes", `r=${NONCE}x,s=AAAA,i=1,x=1`, "malformed"],
    ["sends the attributes in another order", `s=AAAA,r=${NONCE}x,i=1`, "malformed"],
    ["sends nothing", "", "malformed"],
  ])("fails the exchange when it %s", async (_name, serverFirst, reason) => {
    const client = createClient();
    client.start(["SCRAM-SHA-256"]);

    expect(await errorOf(() => client.continue(toBytes(serverFirst)))).toMatchObject({
      sqlState: "08P01",
      reason,
    });
    expect(await errorOf(() => client.continue(toBytes(`r=${NONCE}x,s=AAAA,i=1`)))).toMatchObject({
      reason: "order",
    });
  });

  test.each([
    ["a wrong signature", `v=${Buffer.alloc(32).toString("base64")}`, "28000", "server_signature"],
    ["an error", "e=other-error", "28000", "server_error"],
    ["a short signature", "v=AAAA", "08P01", "malformed"],
    ["two attributes", "v=AAAA,x=1", "08P01", "malformed"],
    ["nothing", "", "08P01", "malformed"],
  ] as const)("is not verified with %s", async (_name, serverFinal, sqlState, reason) => {
    const client = createClient();
    client.start(["SCRAM-SHA-256"]);
    await client.continue(toBytes(`r=${NONCE}x,s=AAAA,i=1`));

    expect(await errorOf(() => client.finish(toBytes(serverFinal)))).toMatchObject({
      sqlState,
      reason,
    });
    expect(client.isVerified).toBe(false);
  });

  test("that skips its signature leaves the exchange unverified", async () => {
    const client = createClient();
    client.start(["SCRAM-SHA-256"]);
    await client.continue(toBytes(`r=${NONCE}x,s=AAAA,i=1`));

    expect(client.isVerified).toBe(false);
  });

  test("that sends its signature before its nonce is out of order", async () => {
    const client = createClient();
    client.start(["SCRAM-SHA-256"]);

    expect(await errorOf(() => client.finish(toBytes("v=AAAA")))).toMatchObject({
      sqlState: "08P01",
      reason: "order",
    });
  });
});

describe("ScramKeyCache", () => {
  const salt = new Uint8Array([1, 2, 3]);

  test("equal inputs are derived once, also at the same time", () => {
    const cache = new ScramKeyCache();

    const first = cache.derive(new Secret("a"), salt, 1);
    const second = cache.derive(new Secret("a"), salt, 1);

    expect(second).toBe(first);
    expect(cache.count).toBe(1);
  });

  test("another password, salt or count gives other keys", async () => {
    const cache = new ScramKeyCache();
    const inputs = [
      { password: new Secret("a"), salt, iterations: 1 },
      { password: new Secret("b"), salt, iterations: 1 },
      { password: new Secret("a"), salt: new Uint8Array([1, 2]), iterations: 1 },
      { password: new Secret("a"), salt, iterations: 2 },
    ];

    const derived = await Promise.all(
      inputs.map((input) => cache.derive(input.password, input.salt, input.iterations)),
    );

    const expected = inputs.map((input) =>
      deriveScramKeys(input.password, input.salt, input.iterations),
    );
    expect(derived).toEqual(await Promise.all(expected));
    expect(cache.count).toBe(4);
  });

  test("the cache never grows over its maximum", async () => {
    const cache = new ScramKeyCache(2);

    for (const password of ["a", "b", "c"]) await cache.derive(new Secret(password), salt, 1);

    expect(cache.count).toBe(2);
  });

  test("a reconnect to the same server takes its keys from the cache", async () => {
    const keyCache = new ScramKeyCache();
    const login = async (): Promise<Uint8Array> => {
      const client = new ScramClientExchange({
        password: new Secret("pencil"),
        randomBytes: fixedBytes(1),
        keyCache,
      });
      client.start(["SCRAM-SHA-256"]);
      return client.continue(toBytes(`r=${NONCE}x,s=AAAA,i=1`));
    };

    expect(await login()).toEqual(await login());
    expect(keyCache.count).toBe(1);
  });
});
