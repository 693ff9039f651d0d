// Keys and tokens for the tests of auth/: real signatures, and parts that can be bent by hand.
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import type { CryptoKey, JWK } from "jose";

export const ISSUER = "https://issuer.example";
export const AUDIENCE = "walgate";
/** 2026-11-30T00:00:00Z. */
export const NOW_MS = 1_795_996_800_000;
export const NOW_SECONDS: number = NOW_MS / 1000;
export const HS256_SECRET = "0123456789abcdef0123456789abcdef";

export interface TestKey {
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function createTestKey(alg: string, kid?: string): Promise<TestKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = await exportJWK(publicKey);
  return { privateKey, jwk: kid === undefined ? jwk : { ...jwk, kid } };
}

export function goodClaims(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: "user-1",
    iat: NOW_SECONDS - 10,
    exp: NOW_SECONDS + 600,
    ...changes,
  };
}

export function signToken(
  key: CryptoKey | Uint8Array,
  header: { readonly alg: string } & Record<string, unknown>,
  claims: Record<string, unknown> = goodClaims(),
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader(header).sign(key);
}

export function signHs256(
  claims: Record<string, unknown> = goodClaims(),
  secret: string = HS256_SECRET,
): Promise<string> {
  return signToken(new TextEncoder().encode(secret), { alg: "HS256", typ: "JWT" }, claims);
}

/** A token from texts, with whatever signature: for input that no library would make. */
export function rawToken(header: string, claims: string, signature = "AAAA"): string {
  const encode = (text: string): string => Buffer.from(text).toString("base64url");
  return `${encode(header)}.${encode(claims)}.${signature}`;
}
