// Unit tests of auth/jwt/issuer.ts.
import { expect, test } from "bun:test";
import { createIssuer } from "#auth/jwt/issuer.ts";
import type { IssuerConfig } from "#auth/jwt/issuer.ts";
import { FixedKeySource } from "#auth/jwt/key-source.ts";
import { KeySet } from "#auth/jwt/key-set.ts";
import { Secret } from "#auth/secret.ts";
import { createTestKey } from "#test/unit/auth/support/tokens.ts";

const { jwk } = await createTestKey("ES256", "k");
const parsed = KeySet.parse({ keys: [jwk] });
if (!parsed.ok) throw new Error(parsed.problem);
const source = new FixedKeySource(parsed.keys);

const good: IssuerConfig = {
  issuer: "i",
  audiences: ["a"],
  keys: { kind: "secret", secret: new Secret("x".repeat(32)) },
};
const remote: IssuerConfig = { ...good, keys: { kind: "remote", url: "https://i.example/k" } };

function problemOf(config: IssuerConfig): string | undefined {
  const result = createIssuer(config, () => source);
  return result.ok ? undefined : result.problem;
}

test.each<[string, IssuerConfig, string | undefined]>([
  ["a secret of 32 bytes", good, undefined],
  [
    "a secret of 31 bytes",
    { ...good, keys: { kind: "secret", secret: new Secret("x".repeat(31)) } },
    'issuer "i" needs a secret of at least 32 bytes',
  ],
  ["an inline key set", { ...good, keys: { kind: "inline", jwks: { keys: [jwk] } } }, undefined],
  [
    "an inline set without keys",
    { ...good, keys: { kind: "inline", jwks: {} } },
    'issuer "i" has a key set that is not a JSON Web Key Set',
  ],
  ["a key set URL", remote, undefined],
  [
    "a key set URL over http",
    { ...good, keys: { kind: "remote", url: "http://i.example" } },
    'issuer "i" has a key set URL that may use http: only for a loopback host',
  ],
  [
    "no audience",
    { ...good, audiences: [] },
    'issuer "i" needs at least one audience, none of them empty',
  ],
  [
    "an empty audience",
    { ...good, audiences: [""] },
    'issuer "i" needs at least one audience, none of them empty',
  ],
  ["an empty name", { ...good, issuer: "" }, 'issuer "" has an empty name'],
  [
    "an asymmetric algorithm for a secret",
    { ...good, algorithms: ["RS256"] },
    'issuer "i" lists an algorithm that does not fit its keys',
  ],
  [
    "HS256 for public keys",
    { ...remote, algorithms: ["ES256", "HS256"] },
    'issuer "i" lists an algorithm that does not fit its keys',
  ],
  ["an empty list of algorithms", { ...remote, algorithms: [] }, 'issuer "i" lists no algorithm'],
])("an issuer with %s is judged", (_name, config, problem) => {
  expect(problemOf(config)).toBe(problem);
});
