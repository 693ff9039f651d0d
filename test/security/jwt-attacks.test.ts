// Known attacks on JWT verification, each as a token: all are refused, and no answer repeats the token.
import { createHmac, createPublicKey } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { KeySet } from "#auth/jwt/key-set.ts";
import { FixedKeySource } from "#auth/jwt/key-source.ts";
import { TokenVerifier } from "#auth/jwt/token-verifier.ts";
import { Secret } from "#auth/secret.ts";
import {
  AUDIENCE,
  createTestKey,
  goodClaims,
  HS256_SECRET,
  ISSUER,
  NOW_MS,
  NOW_SECONDS,
  rawToken,
  signHs256,
  signToken,
} from "#test/unit/auth/support/tokens.ts";

const SECRET_ISSUER = "https://secret.example";
const rsa = await createTestKey("RS256", "rsa");
const ec = await createTestKey("ES256", "ec");
const stranger = await createTestKey("ES256", "stranger");
const parsed = KeySet.parse({ keys: [rsa.jwk, ec.jwk] });
if (!parsed.ok) throw new Error(parsed.problem);
const source = new FixedKeySource(parsed.keys);

const verifier = new TokenVerifier({
  issuers: [
    { issuer: ISSUER, audiences: [AUDIENCE], keys: { kind: "public", source } },
    {
      issuer: SECRET_ISSUER,
      audiences: [AUDIENCE],
      keys: { kind: "secret", secret: new Secret(HS256_SECRET) },
    },
  ],
  nowMs: () => NOW_MS,
});

const CLAIMS = JSON.stringify(goodClaims());
const secretClaims = (changes: Record<string, unknown> = {}): Record<string, unknown> =>
  goodClaims({ iss: SECRET_ISSUER, ...changes });

function signByHand(header: Record<string, unknown>, claims: string, key: string | Buffer): string {
  const input = rawToken(JSON.stringify(header), claims).split(".").slice(0, 2).join(".");
  return `${input}.${createHmac("sha256", key).update(input).digest("base64url")}`;
}

async function reasonOf(token: string): Promise<string> {
  const result = await verifier.verify(new Secret(token));
  const answer = JSON.stringify(result);
  for (const part of token.split(".").filter((text) => text.length > 12)) {
    expect(result.ok || !answer.includes(part)).toBe(true);
  }
  return result.ok ? "ok" : result.failure.reason;
}

const rsaPem = createPublicKey({ key: { ...rsa.jwk }, format: "jwk" }).export({
  type: "spki",
  format: "pem",
});

describe("the tokens of an honest issuer", () => {
  test("are accepted, so that the refusals below mean something", async () => {
    expect([
      await reasonOf(await signToken(ec.privateKey, { alg: "ES256", kid: "ec" })),
      await reasonOf(await signHs256(secretClaims())),
      await reasonOf(signByHand({ alg: "HS256" }, JSON.stringify(secretClaims()), HS256_SECRET)),
    ]).toEqual(["ok", "ok", "ok"]);
  });
});

describe("algorithm confusion", () => {
  test.each(["none", "None", "nOnE", "NONE", "", "hs256", "HS256 ", "HS512", "RS1", "__proto__"])(
    "alg %p is refused for public keys and for a secret",
    async (alg) => {
      const header = JSON.stringify({ alg });

      expect(await reasonOf(rawToken(header, CLAIMS))).toBe("token_algorithm");
      expect(await reasonOf(rawToken(header, JSON.stringify(secretClaims())))).toBe(
        "token_algorithm",
      );
    },
  );

  test("alg none with an empty signature is refused", async () => {
    expect(await reasonOf(rawToken('{"alg":"none"}', CLAIMS, ""))).toBe("token_malformed");
  });

  test.each([
    ["the PEM text", rsaPem],
    ["the PEM text without its last line end", rsaPem.trim()],
    ["the modulus", Buffer.from(rsa.jwk.n ?? "", "base64url")],
  ])("HS256 signed with %s of the public key is refused", async (_name, key) => {
    const token = signByHand({ alg: "HS256", kid: "rsa" }, CLAIMS, key);

    expect(await reasonOf(token)).toBe("token_algorithm");
  });

  test("an RSA key does not serve an EC algorithm, and the other way round", async () => {
    expect(await reasonOf(rawToken('{"alg":"ES256","kid":"rsa"}', CLAIMS))).toBe(
      "token_unknown_key",
    );
    expect(await reasonOf(rawToken('{"alg":"RS256","kid":"ec"}', CLAIMS))).toBe(
      "token_unknown_key",
    );
  });

  test("a token of the issuer with public keys cannot claim the issuer with the secret", async () => {
    expect(
      await reasonOf(await signToken(ec.privateKey, { alg: "ES256", kid: "ec" }, secretClaims())),
    ).toBe("token_algorithm");
  });
});

describe("keys inside the header", () => {
  test.each<[string, Record<string, unknown>]>([
    ["jwk", { jwk: stranger.jwk }],
    ["jku", { jku: "https://evil.example/keys" }],
    ["x5u", { x5u: "https://evil.example/cert" }],
    ["x5c", { x5c: ["AAAA"] }],
  ])("%s is never used", async (_name, header) => {
    const own = await signToken(stranger.privateKey, { alg: "ES256", ...header });
    const known = await signToken(stranger.privateKey, { alg: "ES256", kid: "ec", ...header });

    expect([await reasonOf(own), await reasonOf(known)]).toEqual([
      "token_signature",
      "token_signature",
    ]);
  });

  test.each(["../../etc/passwd", "' OR 1=1 --", "__proto__", "constructor", "a\0b", ""])(
    "kid %p finds no key",
    async (kid) => {
      expect(await reasonOf(await signToken(ec.privateKey, { alg: "ES256", kid }))).toBe(
        "token_unknown_key",
      );
    },
  );

  test.each([[7], [null], [{}], [["ec"]], ["x".repeat(257)]])("kid %p is refused", async (kid) => {
    expect(await reasonOf(rawToken(JSON.stringify({ alg: "ES256", kid }), CLAIMS))).toBe(
      "token_malformed",
    );
  });
});

describe("extensions and other kinds of token", () => {
  test.each<[string, Record<string, unknown>]>([
    ["an unknown critical extension", { crit: ["x"], x: 1 }],
    ["an empty crit", { crit: [] }],
    ["crit that names b64", { crit: ["b64"], b64: true }],
    ["b64 false", { crit: ["b64"], b64: false }],
    ["b64 false without crit", { b64: false }],
    ["the type of a logout token", { typ: "logout+jwt" }],
    ["the type of a security event", { typ: "secevent+jwt" }],
    ["a type that is not text", { typ: 1 }],
  ])("%s is refused even with a good signature", async (_name, header) => {
    const token = signByHand(
      { alg: "HS256", ...header },
      JSON.stringify(secretClaims()),
      HS256_SECRET,
    );

    expect(await reasonOf(token)).toBe("token_malformed");
  });

  test.each([
    ["an encrypted token", "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..AAAA.AAAA.AAAA"],
    ["two parts", "eyJhbGciOiJIUzI1NiJ9.e30"],
    ["padding", "eyJhbGciOiJIUzI1NiJ9.e30=.AAAA"],
    ["a space", "eyJhbGciOiJIUzI1NiJ9.e30. AAAA"],
    ["a line end", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA\n"],
    ["a header that is an array", rawToken("[]", CLAIMS)],
    ["a header that is not JSON", rawToken("{", CLAIMS)],
    ["claims that are not an object", rawToken('{"alg":"ES256"}', "[]")],
    ["claims that are null", rawToken('{"alg":"ES256"}', "null")],
    ["nothing", ""],
  ])("%s is refused", async (_name, token) => {
    expect(await reasonOf(token)).toBe("token_malformed");
  });
});

describe("signatures", () => {
  test.each([
    ["r and s zero", Buffer.alloc(64)],
    [
      "r and s equal to the order",
      Buffer.from(
        "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551".repeat(2),
        "hex",
      ),
    ],
    ["one byte", Buffer.alloc(1)],
    ["a DER form", Buffer.from("3006020101020101", "hex")],
  ])("ES256 with %s is refused", async (_name, signature) => {
    const token = rawToken('{"alg":"ES256","kid":"ec"}', CLAIMS, signature.toString("base64url"));

    expect(await reasonOf(token)).toBe("token_signature");
  });

  test("claims that were changed after signing are refused", async () => {
    const [header, , signature] = (await signHs256(secretClaims())).split(".");
    const claims = Buffer.from(JSON.stringify(secretClaims({ sub: "admin" }))).toString(
      "base64url",
    );

    expect(await reasonOf(`${header}.${claims}.${signature}`)).toBe("token_signature");
  });
});

describe("claims", () => {
  const signed = (claims: string): string => signByHand({ alg: "HS256" }, claims, HS256_SECRET);
  const withExpiry = (expiry: string): string =>
    signed(`{"iss":"${SECRET_ISSUER}","aud":"walgate","sub":"u","exp":${expiry}}`);

  test.each([
    ["as text", `"${NOW_SECONDS + 60}"`],
    ["with a fraction", `${NOW_SECONDS}.5`],
    ["too large for a number", "1e400"],
    ["as null", "null"],
    ["as an array", `[${NOW_SECONDS + 60}]`],
  ])("exp %s is refused", async (_name, expiry) => {
    expect(await reasonOf(withExpiry(expiry))).toBe("token_claims");
  });

  test("of a claim that occurs twice the last one counts, for the issuer's choice too", async () => {
    const twice = (first: string, second: string): string =>
      signed(`{"iss":"${first}","iss":"${second}","aud":"walgate","exp":${NOW_SECONDS + 60}}`);

    expect([
      await reasonOf(twice(ISSUER, SECRET_ISSUER)),
      await reasonOf(twice(SECRET_ISSUER, ISSUER)),
    ]).toEqual(["ok", "token_algorithm"]);
  });

  test.each([`${SECRET_ISSUER}/`, SECRET_ISSUER.toUpperCase(), "", "__proto__"])(
    "the issuer %p is not ours",
    async (iss) => {
      expect(await reasonOf(await signHs256(secretClaims({ iss })))).toBe("token_issuer");
    },
  );

  test("a claim named __proto__ changes no other object", async () => {
    const token = signed(
      `{"iss":"${SECRET_ISSUER}","aud":"walgate","exp":${NOW_SECONDS + 60},"__proto__":{"role":"x"}}`,
    );

    expect(await reasonOf(token)).toBe("ok");
    expect(Object.hasOwn(Object.prototype, "role")).toBe(false);
  });
});
