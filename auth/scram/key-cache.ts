// Remembers the keys derived for our own logins, so that a reconnect costs no PBKDF2.
import { createHmac, randomBytes } from "node:crypto";
import { BoundedCache } from "../bounded-cache.ts";
import type { Secret } from "../secret.ts";
import { deriveScramKeys } from "./verifier.ts";
import type { ScramKeys } from "./verifier.ts";

/** One entry per (password, salt, iterations), thus per role and server; about 400 bytes each. */
const KEY_CACHE_COUNT_MAX = 1000;

/** Derives SCRAM keys once for equal inputs, also when many logins ask at the same time. */
export class ScramKeyCache {
  readonly #cache: BoundedCache<Promise<ScramKeys>>;
  // A plain hash of the inputs would let a memory dump be searched for weak passwords.
  readonly #processKey = randomBytes(32);

  constructor(countMax: number = KEY_CACHE_COUNT_MAX) {
    this.#cache = new BoundedCache(countMax);
  }

  get count(): number {
    return this.#cache.count;
  }

  /** The keys for these inputs. A derivation that fails is not kept. */
  derive(password: Secret, salt: Uint8Array, iterations: number): Promise<ScramKeys> {
    const key = createHmac("sha256", this.#processKey)
      .update(`${iterations}:${salt.byteLength}:`)
      .update(salt)
      .update(password.revealBytes())
      .digest("base64");
    const known = this.#cache.get(key);
    if (known !== undefined) return known;
    const derived = deriveScramKeys(password, salt, iterations);
    this.#cache.set(key, derived);
    derived.catch(() => this.#cache.delete(key));
    return derived;
  }
}

/** The process's cache for logins to PostgreSQL. */
export const backendScramKeys: ScramKeyCache = new ScramKeyCache();
