// Unit tests of auth/jwt/claims.ts: both sides of each limit.
import { describe, expect, test } from "bun:test";
import { checkClaims, SUBJECT_LENGTH_MAX } from "#auth/jwt/claims.ts";
import {
  AUDIENCE,
  goodClaims,
  ISSUER,
  NOW_MS,
  NOW_SECONDS,
} from "#test/unit/auth/support/tokens.ts";

const required = { issuer: ISSUER, audiences: [AUDIENCE, "other"], lifetimeMaxMs: 3_600_000 };

function outcome(changes: Record<string, unknown>): string {
  const result = checkClaims(goodClaims(changes), required, NOW_MS);
  return result.ok ? "ok" : result.reason;
}

describe("checkClaims", () => {
  test("good claims give the token with its expiry in milliseconds", () => {
    expect(checkClaims(goodClaims(), required, NOW_MS)).toEqual({
      ok: true,
      token: {
        issuer: ISSUER,
        subject: "user-1",
        claims: goodClaims(),
        expiresAtMs: NOW_MS + 600_000,
      },
    });
  });

  test.each([
    ["exp 30 s ago", { exp: NOW_SECONDS - 30 }, "token_expired"],
    ["exp 29 s ago", { exp: NOW_SECONDS - 29 }, "ok"],
    ["no exp", { exp: undefined }, "token_claims"],
    ["exp as text", { exp: String(NOW_SECONDS + 60) }, "token_claims"],
    ["exp with a fraction", { exp: NOW_SECONDS + 60.5 }, "token_claims"],
    ["an infinite exp", { exp: Infinity }, "token_claims"],
    ["an exp beyond the year 9999", { exp: 253_402_300_800 }, "token_claims"],
    ["a negative exp", { exp: -1 }, "token_claims"],
    ["nbf in 30 s", { nbf: NOW_SECONDS + 30 }, "ok"],
    ["nbf in 31 s", { nbf: NOW_SECONDS + 31 }, "token_not_yet_valid"],
    ["nbf as text", { nbf: "0" }, "token_claims"],
    ["nbf null", { nbf: null }, "token_claims"],
    ["iat in 30 s", { iat: NOW_SECONDS + 30 }, "ok"],
    ["iat in 31 s", { iat: NOW_SECONDS + 31 }, "token_not_yet_valid"],
    ["iat with a fraction", { iat: NOW_SECONDS - 0.5 }, "ok"],
    ["the longest life", { iat: NOW_SECONDS, exp: NOW_SECONDS + 3600 }, "ok"],
    ["a longer life", { iat: NOW_SECONDS, exp: NOW_SECONDS + 3601 }, "token_lifetime"],
    ["the longest life from now", { iat: undefined, exp: NOW_SECONDS + 3600 }, "ok"],
    ["a longer life from now", { iat: undefined, exp: NOW_SECONDS + 3601 }, "token_lifetime"],
    ["no aud", { aud: undefined }, "token_audience"],
    ["another aud", { aud: "someone" }, "token_audience"],
    ["aud with another case", { aud: "Walgate" }, "token_audience"],
    ["an empty aud list", { aud: [] }, "token_audience"],
    ["aud among others", { aud: ["someone", "other"] }, "ok"],
    ["aud nested in lists", { aud: [["walgate"]] }, "token_audience"],
    ["the longest sub", { sub: "s".repeat(SUBJECT_LENGTH_MAX) }, "ok"],
    ["a longer sub", { sub: "s".repeat(SUBJECT_LENGTH_MAX + 1) }, "token_claims"],
    ["an empty sub", { sub: "" }, "token_claims"],
    ["a sub that is a number", { sub: 7 }, "token_claims"],
    ["a sub with a NUL", { sub: "a\0b" }, "token_claims"],
  ])("a token with %s is judged by the limit", (_name, changes, reason) => {
    expect(outcome(changes)).toBe(reason);
  });

  test("without sub, equal claims are one subject and other claims another", () => {
    const subjectOf = (changes: Record<string, unknown>): string | undefined => {
      const result = checkClaims(goodClaims({ sub: undefined, ...changes }), required, NOW_MS);
      return result.ok ? result.token.subject : undefined;
    };
    const plain = subjectOf({ role: "a" });

    expect(plain).toMatch(/^anonymous:[A-Za-z0-9_-]{43}$/);
    expect(subjectOf({ role: "a", exp: NOW_SECONDS + 5, iat: NOW_SECONDS, jti: "1" })).toBe(plain);
    expect(subjectOf({ role: "b" })).not.toBe(plain);
  });
});
