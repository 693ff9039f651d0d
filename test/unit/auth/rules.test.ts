// Unit tests of auth/rules.ts.
import { describe, expect, test } from "bun:test";
import { findRuleProblem, resolveTenant, ruleForToken, rulesForLogin } from "#auth/rules.ts";
import type { AuthRule, TokenTarget } from "#auth/rules.ts";

const databaseOfProfile = (profile: string): string | undefined =>
  new Map([
    ["app", "app"],
    ["server", "app"],
    ["reports", "reports"],
  ]).get(profile);

const http: TokenTarget = { transport: "http" };

function matchToken(
  rule: Partial<AuthRule>,
  claims: Record<string, unknown>,
  target: TokenTarget = http,
): boolean {
  const rules: AuthRule[] = [{ method: "jwt", profile: "app", ...rule }];
  return ruleForToken(rules, target, { issuer: "i", claims }, databaseOfProfile) !== undefined;
}

describe("ruleForToken", () => {
  test("the first rule that matches decides, and rules for passwords are passed over", () => {
    const rules: AuthRule[] = [
      { method: "scram-sha-256", profile: "server" },
      { method: "jwt", profile: "reports", claims: { role: "analyst" } },
      { method: "reject", claims: { role: "banned" } },
      { method: "jwt", profile: "app" },
    ];
    const match = (claims: Record<string, unknown>): AuthRule | undefined =>
      ruleForToken(rules, http, { issuer: "i", claims }, databaseOfProfile);

    expect([{ role: "analyst" }, { role: "banned" }, {}].map(match)).toEqual([
      rules[1],
      rules[2],
      rules[3],
    ]);
  });

  test.each<[string, Record<string, string | number | boolean>, Record<string, unknown>, boolean]>([
    ["an equal text", { role: "a" }, { role: "a" }, true],
    ["another case", { role: "a" }, { role: "A" }, false],
    ["an array with the value", { role: "a" }, { role: ["b", "a"] }, true],
    ["an array without it", { role: "a" }, { role: ["b"] }, false],
    ["an array in an array", { role: "a" }, { role: [["a"]] }, false],
    ["an object", { role: "a" }, { role: { a: true } }, false],
    ["no claim", { role: "a" }, {}, false],
    ["an equal number", { level: 1 }, { level: 1 }, true],
    ["a number as text", { level: 1 }, { level: "1" }, false],
    ["true", { admin: true }, { admin: true }, true],
    ["something truthy", { admin: true }, { admin: 1 }, false],
    ["one of two claims", { role: "a", level: 1 }, { role: "a" }, false],
    ["inherited by the claims", { role: "a" }, Object.create({ role: "a" }), false],
  ])("a claim that is %s is compared exactly", (_name, wanted, claims, expected) => {
    expect(matchToken({ claims: wanted }, claims)).toBe(expected);
  });

  test("issuer, transport, database and user are compared", () => {
    const target: TokenTarget = { transport: "postgres", database: "app", user: "jwt" };

    expect(
      matchToken({ issuer: "i", transport: "postgres", database: "app", user: "jwt" }, {}, target),
    ).toBe(true);
    expect(matchToken({ issuer: "j" }, {}, target)).toBe(false);
    expect(matchToken({ transport: "http" }, {}, target)).toBe(false);
    expect(matchToken({ database: "reports" }, {}, target)).toBe(false);
    expect(matchToken({ user: "app" }, {}, target)).toBe(false);
  });

  test("without a requested database the profile's is compared, and without a user none matches", () => {
    expect(matchToken({ database: "app" }, {})).toBe(true);
    expect(matchToken({ database: "reports" }, {})).toBe(false);
    expect(matchToken({ user: "app" }, {})).toBe(false);
  });
});

describe("rulesForLogin", () => {
  test("rules that can apply are kept in order", () => {
    const rules: AuthRule[] = [
      { method: "jwt", profile: "reports" },
      { method: "reject", claims: { role: "banned" } },
      { method: "jwt", profile: "app" },
      { method: "scram-sha-256", profile: "server", user: "bob" },
      { method: "password", profile: "server", transport: "http" },
      { method: "reject", database: "reports" },
      { method: "scram-sha-256", profile: "server", user: "app", database: "app" },
    ];

    expect(
      rulesForLogin(
        rules,
        { transport: "postgres", database: "app", user: "app" },
        databaseOfProfile,
      ),
    ).toEqual([rules[2], rules[6]].filter((rule) => rule !== undefined));
  });
});

describe("resolveTenant", () => {
  const refusal: ReturnType<typeof resolveTenant> = {
    ok: false,
    failure: {
      sqlState: "28000",
      reason: "tenant_claim",
      clientMessage: "the identity names no valid tenant",
    },
  };

  test.each<[string, string | undefined, Record<string, unknown>, string | undefined]>([
    ["no tenant in the rule", undefined, {}, "app"],
    ["a literal", "acme", {}, "acme"],
    ["a claim", "claim:org", { org: "acme" }, "acme"],
    ["a number", "claim:org", { org: 42 }, "42"],
    ["a claim with a URL as its name", "claim:https://x/org", { "https://x/org": "acme" }, "acme"],
    ["the longest claim", "claim:org", { org: "x".repeat(256) }, "x".repeat(256)],
    ["a longer claim", "claim:org", { org: "x".repeat(257) }, undefined],
    ["an empty claim", "claim:org", { org: "" }, undefined],
    ["no such claim", "claim:org", {}, undefined],
    ["an array", "claim:org", { org: ["acme"] }, undefined],
    ["an object", "claim:org", { org: { id: 1 } }, undefined],
    ["null", "claim:org", { org: null }, undefined],
    ["true", "claim:org", { org: true }, undefined],
    ["infinity", "claim:org", { org: Infinity }, undefined],
    ["a claim with a NUL", "claim:org", { org: "a\0" }, undefined],
    ["a member of Object.prototype", "claim:__proto__", {}, undefined],
  ])("with %s the tenant is that or the caller is refused", (_name, tenant, claims, expected) => {
    const result = resolveTenant({ method: "jwt", profile: "app", tenant }, claims, "app");

    expect(result).toEqual(expected === undefined ? refusal : { ok: true, tenant: expected });
  });
});

test.each<[AuthRule, string | undefined]>([
  [{ method: "jwt", profile: "app", tenant: "claim:org", issuer: "i", claims: {} }, undefined],
  [{ method: "reject", issuer: "i" }, undefined],
  [{ method: "jwt" }, "has no profile"],
  [{ method: "password", profile: "x" }, 'names an unknown profile "x"'],
  [
    { method: "password", profile: "app", issuer: "i" },
    "has token conditions, but its method is password",
  ],
  [
    { method: "scram-sha-256", profile: "app", claims: {} },
    "has token conditions, but its method is scram-sha-256",
  ],
  [
    { method: "scram-sha-256", profile: "app", tenant: "claim:a" },
    "takes its tenant from a claim, but its method is scram-sha-256",
  ],
  [{ method: "jwt", profile: "app", tenant: "claim:" }, "has an empty tenant"],
  [{ method: "jwt", profile: "app", tenant: "" }, "has an empty tenant"],
])("the rule %j is judged", (rule, problem) => {
  expect(findRuleProblem(rule, databaseOfProfile)).toBe(problem);
});
