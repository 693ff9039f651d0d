// Verifies compact JWS tokens (RFC 7515, RFC 7519) of the configured issuers, and remembers good ones.
// No error ever holds a token or a part of it.
import { hash } from "node:crypto";
import { compactVerify, errors } from "jose";
import type { CryptoKey } from "jose";
import { BoundedCache } from "../bounded-cache.ts";
import type { AuthFailure, AuthFailureReason } from "../identity.ts";
import type { Secret } from "../secret.ts";
import { checkClaims } from "./claims.ts";
import type { VerifiedToken } from "./claims.ts";
import { ASYMMETRIC_ALGORITHMS, isRecord } from "./key-set.ts";
import type { AsymmetricAlgorithm } from "./key-set.ts";
import { FIXED_GENERATION } from "./key-source.ts";
import type { KeyLookup, KeySource } from "./key-source.ts";

export type JwtAlgorithm = "HS256" | AsymmetricAlgorithm;

/** The largest header that common proxies let through; a token with many groups is about 4 KB. */
export const TOKEN_LENGTH_MAX = 16 * 1024;

/** About 1 KB each with claims. A hit costs 1 us, a verification 25 to 100. */
export const TOKEN_CACHE_COUNT_MAX = 10_000;

/** Ids are about 40 characters long. */
const KID_LENGTH_MAX = 256;

/** RFC 7518, section 3.2: a key at least as long as the hash. */
export const HS256_SECRET_BYTES_MIN = 32;

/** Media types of tokens that are meant for access; an absent `typ` is fine as well. */
const TOKEN_TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt", "application/at+jwt"]);

/** How tokens of an issuer are checked: one shared secret, or public keys, never both. */
export type IssuerKeys =
  | { readonly kind: "secret"; readonly secret: Secret }
  | { readonly kind: "public"; readonly source: KeySource };

export interface Issuer {
  /** Compared with `iss` character by character. */
  readonly issuer: string;
  /** One of these must be in `aud`. */
  readonly audiences: readonly string[];
  readonly keys: IssuerKeys;
  /** Default: HS256 with a secret, each asymmetric one with public keys. */
  readonly algorithms?: readonly JwtAlgorithm[] | undefined;
  /** Longest time from `iat` (or from now, if there is none) to `exp`. Default: no limit. */
  readonly lifetimeMaxMs?: number | undefined;
}

export type TokenResult =
  | { readonly ok: true; readonly token: VerifiedToken }
  | { readonly ok: false; readonly failure: AuthFailure };

export interface TokenVerifierOptions {
  readonly issuers: readonly Issuer[];
  /** Wall clock. */
  readonly nowMs: () => number;
  readonly cacheCountMax?: number;
}

interface KnownIssuer extends Issuer {
  readonly allowed: ReadonlySet<string>;
  hmacKey?: Promise<CryptoKey>;
}

interface CachedToken {
  readonly token: VerifiedToken;
  readonly issuer: KnownIssuer;
  readonly generation: number;
}

interface TokenParts {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly claims: Readonly<Record<string, unknown>>;
}

const BASE64URL_PARTS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** True for three base64url parts of which the first can be a JSON object: worth a verification. */
export function hasTokenForm(text: string): boolean {
  return text.startsWith("eyJ") && BASE64URL_PARTS.test(text);
}

/** Immutable but for its cache: new issuers need a new verifier. */
export class TokenVerifier {
  readonly #issuers: ReadonlyMap<string, KnownIssuer>;
  readonly #nowMs: () => number;
  readonly #cache: BoundedCache<CachedToken>;

  constructor(options: TokenVerifierOptions) {
    this.#issuers = new Map(
      options.issuers.map((issuer) => [
        issuer.issuer,
        { ...issuer, allowed: allowedAlgorithms(issuer) },
      ]),
    );
    this.#nowMs = options.nowMs;
    this.#cache = new BoundedCache(options.cacheCountMax ?? TOKEN_CACHE_COUNT_MAX);
  }

  get cachedCount(): number {
    return this.#cache.count;
  }

  async verify(secret: Secret): Promise<TokenResult> {
    const text = secret.reveal();
    if (text.length > TOKEN_LENGTH_MAX) return refuse("token_too_long", "JWT is too long");
    // Not the token itself: what is remembered must be worth nothing to who reads our memory, and found in a time that tells nothing.
    const cacheKey = hash("sha256", text, "hex");
    const cached = this.#cached(cacheKey);
    if (cached !== undefined) return { ok: true, token: cached };

    const parts = parseToken(text);
    if (parts === undefined) return refuse("token_malformed", "JWT is not valid");
    const { iss } = parts.claims;
    const issuer = typeof iss === "string" ? this.#issuers.get(iss) : undefined;
    if (issuer === undefined) return refuse("token_issuer", "JWT issuer is not accepted");
    if (!issuer.allowed.has(parts.alg)) {
      return refuse("token_algorithm", "JWT algorithm is not accepted");
    }
    const lookup = await findKey(issuer, parts);
    if (!lookup.ok) return refuseKey(lookup.reason);
    const failure = await verifySignature(text, parts.alg, lookup.key);
    if (failure !== undefined) return failure;

    const checked = checkClaims(parts.claims, issuer, this.#nowMs());
    if (!checked.ok) return refuse(checked.reason, checked.message);
    this.#cache.set(cacheKey, { token: checked.token, issuer, generation: lookup.generation });
    return checked;
  }

  #cached(cacheKey: string): VerifiedToken | undefined {
    const entry = this.#cache.get(cacheKey);
    if (entry === undefined) return undefined;
    const isAlive = this.#nowMs() < entry.token.expiresAtMs;
    if (isAlive && generationOf(entry.issuer) === entry.generation) return entry.token;
    this.#cache.delete(cacheKey);
    return undefined;
  }
}

function allowedAlgorithms(issuer: Issuer): ReadonlySet<string> {
  // A public key must never serve as an HMAC secret, whatever the configuration lists.
  const possible: readonly JwtAlgorithm[] =
    issuer.keys.kind === "secret" ? ["HS256"] : ASYMMETRIC_ALGORITHMS;
  const wanted = issuer.algorithms ?? possible;
  return new Set(possible.filter((algorithm) => wanted.includes(algorithm)));
}

function generationOf(issuer: KnownIssuer): number | undefined {
  return issuer.keys.kind === "secret" ? FIXED_GENERATION : issuer.keys.source.usableGeneration();
}

async function findKey(issuer: KnownIssuer, parts: TokenParts): Promise<KeyLookup> {
  if (issuer.keys.kind === "secret") {
    issuer.hmacKey ??= importHmacKey(issuer.keys.secret);
    return { ok: true, key: await issuer.hmacKey, generation: FIXED_GENERATION };
  }
  const alg = ASYMMETRIC_ALGORITHMS.find((name) => name === parts.alg);
  if (alg === undefined) return { ok: false, reason: "unknown_key" };
  return issuer.keys.source.find(alg, parts.kid);
}

function importHmacKey(secret: Secret): Promise<CryptoKey> {
  const bytes = Uint8Array.from(secret.revealBytes());
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
}

/** Undefined if the signature is right. */
async function verifySignature(
  text: string,
  alg: string,
  key: CryptoKey,
): Promise<TokenResult | undefined> {
  try {
    await compactVerify(text, key, { algorithms: [alg] });
    return undefined;
  } catch (error) {
    return error instanceof errors.JOSEError || error instanceof TypeError
      ? refuse("token_signature", "JWT signature is not valid")
      : Promise.reject(error);
  }
}

/**
 * Header and claims before anything is proven. Undefined for what no issuer of ours sends:
 * encrypted tokens, `crit` and `b64` (RFC 7515 and RFC 7797 want them understood or refused), and
 * tokens made for another purpose. Keys inside the header (jwk, jku, x5u, x5c) are never looked at.
 */
function parseToken(text: string): TokenParts | undefined {
  if (!BASE64URL_PARTS.test(text)) return undefined;
  const [headerText, claimsText] = text.split(".");
  const header = parseJsonPart(headerText);
  const claims = parseJsonPart(claimsText);
  if (header === undefined || claims === undefined) return undefined;
  const { alg, kid, typ } = header;
  if (typeof alg !== "string" || Object.hasOwn(header, "crit") || Object.hasOwn(header, "b64")) {
    return undefined;
  }
  if (kid !== undefined && (typeof kid !== "string" || kid.length > KID_LENGTH_MAX)) {
    return undefined;
  }
  if (typ !== undefined && !(typeof typ === "string" && TOKEN_TYPES.has(typ.toLowerCase()))) {
    return undefined;
  }
  return { alg, kid, claims };
}

function parseJsonPart(part: string | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const bytes = Buffer.from(part ?? "", "base64url");
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function refuseKey(reason: "unknown_key" | "keys_unavailable"): TokenResult {
  if (reason === "unknown_key") return refuse("token_unknown_key", "JWT key is not known");
  return {
    ok: false,
    failure: {
      sqlState: "57P03",
      reason,
      clientMessage: "the keys of the JWT issuer are not available",
    },
  };
}

function refuse(reason: AuthFailureReason, clientMessage: string): TokenResult {
  return { ok: false, failure: { sqlState: "28000", reason, clientMessage } };
}
