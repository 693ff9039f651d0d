// Unit tests of auth/jwt/token-verifier.ts: what is accepted, and when a remembered token is not.
import { describe, expect, test } from "bun:test";
import { KeySet } from "#auth/jwt/key-set.ts";
import type { AsymmetricAlgorithm } from "#auth/jwt/key-set.ts";
import { FixedKeySource, JWKS_ASK_FIRST_AFTER_MS, RemoteKeySource } from "#auth/jwt/key-source.ts";
import { hasTokenForm, TOKEN_LENGTH_MAX, TokenVerifier } from "#auth/jwt/token-verifier.ts";
import { Secret } from "#auth/secret.ts";
import { FakeIssuer } from "#test/unit/auth/support/issuer-server.ts";
import {
  AUDIENCE,
  createTestKey,
  goodClaims,
  HS256_SECRET,
  ISSUER,
  NOW_MS,
  NOW_SECONDS,
  signHs256,
  signToken,
} from "#test/unit/auth/support/tokens.ts";

function hs256Verifier(nowMs: () => number = () => NOW_MS, cacheCountMax?: number): TokenVerifier {
  return new TokenVerifier({
    issuers: [
      {
        issuer: ISSUER,
        audiences: [AUDIENCE],
        keys: { kind: "secret", secret: new Secret(HS256_SECRET) },
      },
    ],
    nowMs,
    ...(cacheCountMax === undefined ? {} : { cacheCountMax }),
  });
}

async function reasonOf(verifier: TokenVerifier, token: string): Promise<string> {
  const result = await verifier.verify(new Secret(token));
  return result.ok ? "ok" : result.failure.reason;
}

describe("TokenVerifier", () => {
  test("an HS256 token of a configured issuer is accepted with its claims", async () => {
    const result = await hs256Verifier().verify(new Secret(await signHs256()));

    expect(result).toEqual({
      ok: true,
      token: {
        issuer: ISSUER,
        subject: "user-1",
        claims: goodClaims(),
        expiresAtMs: NOW_MS + 600_000,
      },
    });
  });

  test.each(["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"] as const)(
    "a token signed with %s is accepted, and its neighbour's is not",
    async (alg: AsymmetricAlgorithm) => {
      const key = await createTestKey(alg, "k");
      const other = await createTestKey(alg, "k");
      const parsed = KeySet.parse({ keys: [key.jwk] });
      if (!parsed.ok) throw new Error(parsed.problem);
      const source = new FixedKeySource(parsed.keys);
      const verifier = new TokenVerifier({
        issuers: [{ issuer: ISSUER, audiences: [AUDIENCE], keys: { kind: "public", source } }],
        nowMs: () => NOW_MS,
      });

      expect(await reasonOf(verifier, await signToken(key.privateKey, { alg, kid: "k" }))).toBe(
        "ok",
      );
      expect(await reasonOf(verifier, await signToken(key.privateKey, { alg }))).toBe("ok");
      expect(await reasonOf(verifier, await signToken(other.privateKey, { alg, kid: "k" }))).toBe(
        "token_signature",
      );
    },
  );

  test("an issuer's list of algorithms is obeyed", async () => {
    const key = await createTestKey("RS256", "k");
    const parsed = KeySet.parse({ keys: [key.jwk] });
    if (!parsed.ok) throw new Error(parsed.problem);
    const source = new FixedKeySource(parsed.keys);
    const verifier = new TokenVerifier({
      issuers: [
        {
          issuer: ISSUER,
          audiences: [AUDIENCE],
          keys: { kind: "public", source },
          algorithms: ["PS256"],
        },
      ],
      nowMs: () => NOW_MS,
    });

    expect(await reasonOf(verifier, await signToken(key.privateKey, { alg: "RS256" }))).toBe(
      "token_algorithm",
    );
  });

  test("the longest token is read and a longer one is refused unread", async () => {
    // Base64 grows in steps, so the length is reached by trying a few paddings around the estimate.
    const padTo = async (length: number): Promise<string> => {
      const short = (await signHs256(goodClaims({ pad: "" }))).length;
      for (let size = Math.floor(((length - short) * 3) / 4) - 2; ; size += 1) {
        const token = await signHs256(goodClaims({ pad: "x".repeat(size) }));
        if (token.length >= length) return token;
      }
    };
    const longest = await padTo(TOKEN_LENGTH_MAX);
    const tooLong = await padTo(TOKEN_LENGTH_MAX + 1);

    expect([longest.length, tooLong.length > TOKEN_LENGTH_MAX]).toEqual([TOKEN_LENGTH_MAX, true]);
    expect(await reasonOf(hs256Verifier(), longest)).toBe("ok");
    expect(await reasonOf(hs256Verifier(), tooLong)).toBe("token_too_long");
  });

  test("a remembered token is refused as soon as its leeway ends", async () => {
    const clock = { nowMs: NOW_MS };
    const verifier = hs256Verifier(() => clock.nowMs);
    const token = await signHs256(goodClaims({ exp: NOW_SECONDS + 60 }));
    await reasonOf(verifier, token);
    const remembered = verifier.cachedCount;

    clock.nowMs = NOW_MS + 60_000;
    const inLeeway = await reasonOf(verifier, token);
    clock.nowMs = NOW_MS + 90_000;
    const after = await reasonOf(verifier, token);

    expect([remembered, inLeeway, after, verifier.cachedCount]).toEqual([
      1,
      "ok",
      "token_expired",
      0,
    ]);
  });

  test("a token that differs from a remembered one in its signature is not it", async () => {
    const verifier = hs256Verifier();
    const token = await signHs256();
    await reasonOf(verifier, token);
    const other = token.slice(0, -4) + (token.endsWith("AAAA") ? "BBBB" : "AAAA");

    expect(await reasonOf(verifier, other)).toBe("token_signature");
  });

  test("refused tokens are not remembered, and the memory has a maximum", async () => {
    const verifier = hs256Verifier(undefined, 2);
    await reasonOf(verifier, await signHs256(goodClaims(), "x".repeat(32)));
    const afterRefusal = verifier.cachedCount;

    for (const sub of ["a", "b", "c"])
      await reasonOf(verifier, await signHs256(goodClaims({ sub })));

    expect([afterRefusal, verifier.cachedCount]).toEqual([0, 2]);
  });

  test("a remembered token dies when the issuer removes its key", async () => {
    const [key, next] = [await createTestKey("ES256", "k"), await createTestKey("ES256", "n")];
    const issuer = new FakeIssuer([key.jwk]);
    const clock = { nowMs: NOW_MS };
    const source = new RemoteKeySource({
      url: "https://issuer.example/keys",
      fetch: issuer.fetch,
      nowMs: () => clock.nowMs,
    });
    const verifier = new TokenVerifier({
      issuers: [{ issuer: ISSUER, audiences: [AUDIENCE], keys: { kind: "public", source } }],
      nowMs: () => clock.nowMs,
    });
    const claims = goodClaims({ exp: NOW_SECONDS + 86_400 });
    const token = await signToken(key.privateKey, { alg: "ES256", kid: "k" }, claims);

    const first = await reasonOf(verifier, token);
    const second = await reasonOf(verifier, token);
    issuer.publish([next.jwk]);
    clock.nowMs += JWKS_ASK_FIRST_AFTER_MS + 1;
    const third = await reasonOf(verifier, token);

    expect([first, second, third, issuer.requests.length]).toEqual([
      "ok",
      "ok",
      "token_unknown_key",
      2,
    ]);
  });

  test("an issuer out of reach is 57P03, since the token may be good", async () => {
    const key = await createTestKey("ES256", "k");
    const issuer = new FakeIssuer([]);
    issuer.goDown();
    const source = new RemoteKeySource({
      url: "https://issuer.example/keys",
      fetch: issuer.fetch,
      nowMs: () => NOW_MS,
    });
    const verifier = new TokenVerifier({
      issuers: [{ issuer: ISSUER, audiences: [AUDIENCE], keys: { kind: "public", source } }],
      nowMs: () => NOW_MS,
    });

    expect(
      await verifier.verify(
        new Secret(await signToken(key.privateKey, { alg: "ES256", kid: "k" })),
      ),
    ).toEqual({
      ok: false,
      failure: {
        sqlState: "57P03",
        reason: "keys_unavailable",
        clientMessage: "the keys of the JWT issuer are not available",
      },
    });
  });
});

test.each([
  ["eyJh.eyJi.c", true],
  ["eyJh.eyJi.", false],
  ["eyJh.eyJi", false],
  ["eyJh.eyJi.c.d.e", false],
  ["abc.eyJi.c", false],
  ["eyJh.ey Ji.c", false],
  ["", false],
])("that %p has the form of a token is %p", (text, expected) => {
  expect(hasTokenForm(text)).toBe(expected);
});
