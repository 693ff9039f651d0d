// Unit tests of auth/jwt/key-set.ts.
import { describe, expect, test } from "bun:test";
import { JWKS_KEYS_MAX, KeySet } from "#auth/jwt/key-set.ts";
import { createTestKey } from "#test/unit/auth/support/tokens.ts";

const es256 = await createTestKey("ES256", "a");
const rsa = await createTestKey("RS256", "r");
const ed = await createTestKey("EdDSA", "e");

function parse(keys: readonly unknown[]): KeySet {
  const result = KeySet.parse({ keys });
  if (!result.ok) throw new Error(result.problem);
  return result.keys;
}

const isFound = async (keys: KeySet, ...wanted: Parameters<KeySet["find"]>): Promise<boolean> =>
  (await keys.find(...wanted)) !== undefined;

describe("KeySet.find", () => {
  test("a key is found by its id and a fitting algorithm only", async () => {
    const keys = parse([es256.jwk, rsa.jwk, ed.jwk]);

    expect(await isFound(keys, "ES256", "a")).toBe(true);
    expect(await isFound(keys, "RS512", "r")).toBe(true);
    expect(await isFound(keys, "PS256", "r")).toBe(true);
    expect(await isFound(keys, "EdDSA", "e")).toBe(true);
    expect(await isFound(keys, "ES384", "a")).toBe(false);
    expect(await isFound(keys, "RS256", "a")).toBe(false);
    expect(await isFound(keys, "ES256", "b")).toBe(false);
  });

  test("a key that names its algorithm serves no other", async () => {
    const keys = parse([{ ...rsa.jwk, alg: "RS256" }]);

    expect(await isFound(keys, "RS256", "r")).toBe(true);
    expect(await isFound(keys, "PS256", "r")).toBe(false);
  });

  test("without an id the only fitting key is taken, and of two none", async () => {
    const other = await createTestKey("ES256", "b");

    expect(await isFound(parse([es256.jwk, rsa.jwk]), "ES256", undefined)).toBe(true);
    expect(await isFound(parse([es256.jwk, other.jwk]), "ES256", undefined)).toBe(false);
  });

  test("two keys with one id are told apart by their kind, and refused if they cannot be", async () => {
    const twin = await createTestKey("ES256", "a");

    expect(await isFound(parse([es256.jwk, { ...rsa.jwk, kid: "a" }]), "ES256", "a")).toBe(true);
    expect(await isFound(parse([es256.jwk, twin.jwk]), "ES256", "a")).toBe(false);
  });

  test("a point that is not on its curve is no key", async () => {
    expect(await isFound(parse([{ ...es256.jwk, x: "AAAA" }]), "ES256", "a")).toBe(false);
  });
});

describe("KeySet.parse", () => {
  test.each([
    ["a private key", { ...es256.jwk, d: "AAAA" }],
    ["a symmetric key", { kty: "oct", k: "AAAA", kid: "a" }],
    ["an encryption key", { ...es256.jwk, use: "enc" }],
    ["a key for other operations", { ...es256.jwk, key_ops: ["encrypt"] }],
    ["an id that is not text", { ...es256.jwk, kid: 1 }],
    ["half a point", { kty: "EC", crv: "P-256", x: "AAAA" }],
    ["an entry that is no object", 7],
  ])("%s is left out", async (_name, entry) => {
    const good = await createTestKey("EdDSA", "good");

    expect(await isFound(parse([entry, good.jwk]), "ES256", "a")).toBe(false);
    expect(KeySet.parse({ keys: [entry] })).toEqual({
      ok: false,
      problem: "has no public signature key of a supported kind",
    });
  });

  test.each([[null], [[]], ["x"], [{}], [{ keys: {} }]])("%p is not a key set", (document) => {
    expect(KeySet.parse(document)).toEqual({ ok: false, problem: "is not a JSON Web Key Set" });
  });

  test("the largest set is read and one more key makes it too large", () => {
    const largest = Array.from({ length: JWKS_KEYS_MAX }, () => es256.jwk);

    expect(KeySet.parse({ keys: largest }).ok).toBe(true);
    expect(KeySet.parse({ keys: [...largest, es256.jwk] })).toEqual({
      ok: false,
      problem: "has more than 100 keys",
    });
  });

  test("equal sets have equal fingerprints, and another key changes it", () => {
    expect(parse([es256.jwk]).fingerprint).toBe(parse([{ ...es256.jwk }]).fingerprint);
    expect(parse([es256.jwk]).fingerprint).not.toBe(
      parse([{ ...es256.jwk, kid: "b" }]).fingerprint,
    );
  });
});
