// A parsed JSON Web Key Set: public signature keys only, found by algorithm and key id. RFC 7517.
import { createHash } from "node:crypto";
import { importJWK } from "jose";
import type { CryptoKey, JWK } from "jose";

/** Issuers publish two to ten keys; a set this large is a mistake or an attack. */
export const JWKS_KEYS_MAX = 100;

/** The asymmetric algorithms that are accepted, with the kind of key each needs. */
const KEY_KIND = {
  RS256: "RSA",
  RS384: "RSA",
  RS512: "RSA",
  PS256: "RSA",
  ES256: "EC P-256",
  ES384: "EC P-384",
  EdDSA: "OKP Ed25519",
} as const;

export type AsymmetricAlgorithm = keyof typeof KEY_KIND;

export const ASYMMETRIC_ALGORITHMS: readonly AsymmetricAlgorithm[] = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "ES256",
  "ES384",
  "EdDSA",
];

export type KeySetResult =
  { readonly ok: true; readonly keys: KeySet } | { readonly ok: false; readonly problem: string };

interface PublicKey {
  readonly kind: string;
  readonly kid: string | undefined;
  readonly alg: string | undefined;
  /** Only the members that make the public key, so nothing else of the set reaches the import. */
  readonly jwk: JWK;
  readonly imported: Map<AsymmetricAlgorithm, Promise<CryptoKey | undefined>>;
}

export class KeySet {
  readonly #keys: readonly PublicKey[];
  /** Equal for sets with equal usable keys in equal order. */
  readonly fingerprint: string;

  private constructor(keys: readonly PublicKey[]) {
    this.#keys = keys;
    const content = JSON.stringify(keys.map(({ kid, alg, jwk }) => ({ kid, alg, jwk })));
    this.fingerprint = createHash("sha256").update(content).digest("base64");
  }

  /** Keys that are private, symmetric, for encryption or of an unknown kind are left out. */
  static parse(document: unknown): KeySetResult {
    if (!isRecord(document) || !Array.isArray(document["keys"])) {
      return { ok: false, problem: "is not a JSON Web Key Set" };
    }
    const entries: readonly unknown[] = document["keys"];
    if (entries.length > JWKS_KEYS_MAX) {
      return { ok: false, problem: `has more than ${JWKS_KEYS_MAX} keys` };
    }
    const keys = entries.map(readPublicKey).filter((key) => key !== undefined);
    return keys.length === 0
      ? { ok: false, problem: "has no public signature key of a supported kind" }
      : { ok: true, keys: new KeySet(keys) };
  }

  /**
   * The one key that fits. Undefined if there is none, or several: to try each would let a caller
   * choose how much work a bad token costs.
   */
  async find(alg: AsymmetricAlgorithm, kid: string | undefined): Promise<CryptoKey | undefined> {
    const fitting = this.#keys.filter(
      (key) =>
        key.kind === KEY_KIND[alg] &&
        (key.alg === undefined || key.alg === alg) &&
        (kid === undefined || key.kid === kid),
    );
    const key = fitting.length === 1 ? fitting[0] : undefined;
    if (key === undefined) return undefined;
    let imported = key.imported.get(alg);
    if (imported === undefined) {
      imported = importPublicKey(key.jwk, alg);
      key.imported.set(alg, imported);
    }
    return imported;
  }
}

async function importPublicKey(jwk: JWK, alg: AsymmetricAlgorithm): Promise<CryptoKey | undefined> {
  try {
    const key = await importJWK(jwk, alg);
    return key instanceof Uint8Array ? undefined : key;
  } catch {
    // A point off its curve or a modulus that is no number: as good as no key.
    return undefined;
  }
}

function readPublicKey(entry: unknown): PublicKey | undefined {
  if (!isRecord(entry) || "d" in entry || "k" in entry) return undefined;
  const { use, key_ops: operations, kid, alg } = entry;
  if (use !== undefined && use !== "sig") return undefined;
  if (operations !== undefined) {
    if (!Array.isArray(operations) || !operations.includes("verify")) return undefined;
  }
  if (kid !== undefined && typeof kid !== "string") return undefined;
  if (alg !== undefined && typeof alg !== "string") return undefined;
  const jwk = publicMembers(entry);
  if (jwk === undefined) return undefined;
  const kind = jwk.crv === undefined ? "RSA" : `${String(jwk.kty)} ${jwk.crv}`;
  return { kind, kid, alg, jwk, imported: new Map() };
}

function publicMembers(entry: Readonly<Record<string, unknown>>): JWK | undefined {
  const { kty, n, e, crv, x, y } = entry;
  if (kty === "RSA" && typeof n === "string" && typeof e === "string") return { kty, n, e };
  if (typeof crv !== "string" || typeof x !== "string") return undefined;
  if (kty === "EC" && typeof y === "string") return { kty, crv, x, y };
  if (kty === "OKP") return { kty, crv, x };
  return undefined;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
