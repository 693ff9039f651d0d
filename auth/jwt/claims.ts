// The claims of a token whose signature is good: RFC 7519, section "Registered Claim Names". Pure.
import { createHash } from "node:crypto";
import type { AuthFailureReason } from "../identity.ts";

/** Clocks of issuer and gateway may differ by this much. */
export const TOKEN_LEEWAY_MS = 30_000;

/** Subjects are ids of users; OpenID Connect caps them at 255 characters. */
export const SUBJECT_LENGTH_MAX = 255;

/** 9999-12-31. Keeps `exp` in the range in which milliseconds are exact. */
const NUMERIC_DATE_MAX = 253_402_300_799;

export interface VerifiedToken {
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** `exp` in milliseconds since 1970. */
  readonly expiresAtMs: number;
}

export interface ClaimRequirements {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly lifetimeMaxMs?: number | undefined;
}

export type ClaimsResult =
  | { readonly ok: true; readonly token: VerifiedToken }
  | { readonly ok: false; readonly reason: AuthFailureReason; readonly message: string };

/** Checks aud, exp, nbf, iat, sub and the lifetime. `iss` was compared when the issuer was found. */
export function checkClaims(
  claims: Readonly<Record<string, unknown>>,
  required: ClaimRequirements,
  nowMs: number,
): ClaimsResult {
  const { aud, exp, nbf, iat, sub } = claims;
  if (!isAudience(aud, required.audiences)) {
    return refuse("token_audience", "JWT audience is not accepted");
  }
  if (!isNumericDate(exp)) return refuse("token_claims", "JWT has no valid expiry");
  const expiresAtMs = exp * 1000;
  if (nowMs >= expiresAtMs + TOKEN_LEEWAY_MS) return refuse("token_expired", "JWT has expired");
  for (const notBefore of [nbf, iat]) {
    if (notBefore === undefined) continue;
    if (!isTime(notBefore)) return refuse("token_claims", "JWT has a time that is not valid");
    if (notBefore * 1000 > nowMs + TOKEN_LEEWAY_MS) {
      return refuse("token_not_yet_valid", "JWT is not yet valid");
    }
  }
  const startMs = isTime(iat) ? iat * 1000 : nowMs;
  if (required.lifetimeMaxMs !== undefined && expiresAtMs - startMs > required.lifetimeMaxMs) {
    return refuse("token_lifetime", "JWT is valid for too long");
  }
  if (sub !== undefined && !isSubject(sub)) {
    return refuse("token_claims", "JWT subject is not valid");
  }
  const subject = sub ?? anonymousSubject(claims);
  return { ok: true, token: { issuer: required.issuer, subject, claims, expiresAtMs } };
}

/** True for text that is safe as the name of somebody: not empty, bounded, no control characters. */
export function isPrintable(text: string, lengthMax: number): boolean {
  return text !== "" && text.length <= lengthMax && !/\p{Cc}/u.test(text);
}

function isSubject(sub: unknown): sub is string {
  return typeof sub === "string" && isPrintable(sub, SUBJECT_LENGTH_MAX);
}

function isAudience(aud: unknown, audiences: readonly string[]): boolean {
  const values: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return values.some((value) => typeof value === "string" && audiences.includes(value));
}

function isNumericDate(value: unknown): value is number {
  return Number.isSafeInteger(value) && isTime(value);
}

// RFC 7519 allows fractions in a NumericDate; some issuers put them into iat.
function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= NUMERIC_DATE_MAX;
}

/** Stands for "whoever holds exactly these claims"; times and the token's own id do not count. */
function anonymousSubject(claims: Readonly<Record<string, unknown>>): string {
  const { exp: _exp, nbf: _nbf, iat: _iat, jti: _jti, ...lasting } = claims;
  const digest = createHash("sha256").update(JSON.stringify(lasting)).digest("base64url");
  return `anonymous:${digest}`;
}

function refuse(reason: AuthFailureReason, message: string): ClaimsResult {
  return { ok: false, reason, message };
}
