// Makes tokens for local development, under a secret that a local gateway made for itself.
import { SignJWT } from "jose";
import type { Secret } from "../secret.ts";

export interface DevelopmentToken {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, string>>;
  readonly lifetimeSeconds: number;
}

/** A compact HS256 JWT that begins to count at `nowMs` (wall clock). */
export function signDevelopmentToken(
  secret: Secret,
  token: DevelopmentToken,
  nowMs: number,
): Promise<string> {
  const issuedAt = Math.floor(nowMs / 1_000);
  return new SignJWT({ ...token.claims })
    .setProtectedHeader({ alg: "HS256" })
    .setIssuer(token.issuer)
    .setAudience(token.audience)
    .setSubject(token.subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + token.lifetimeSeconds)
    .sign(secret.revealBytes());
}
