// Where an issuer's public keys come from: a fixed set, or a URL that is asked again from time to time.
//
// Age of a remote set:  0 ──── 10 min ──────── 20 min ─────────────── 24 h ──►
//                         use   │ use, refresh   │ ask first; while     │ ask; refuse
//                               │ behind         │ that fails, use      │ if that fails
// An unknown key id asks too, but never sooner than 30 s after the last try, whether that worked or
// not, so a flood of made-up ids cannot be turned against the issuer.
import type { CryptoKey } from "jose";
import { KeySet } from "./key-set.ts";
import type { AsymmetricAlgorithm } from "./key-set.ts";

/** Time for connecting, headers and body together. */
export const JWKS_TIMEOUT_MS = 5_000;
/** A hundred RSA keys of 4096 bits with certificates left out come to about this. */
export const JWKS_BODY_BYTES_MAX = 64 * 1024;
export const JWKS_REFRESH_AFTER_MS = 10 * 60_000;
/** Ends the trust in a key that the issuer removed while nobody logged in here. */
export const JWKS_ASK_FIRST_AFTER_MS = 20 * 60_000;
export const JWKS_STALE_MAX_MS = 24 * 60 * 60_000;
export const JWKS_COOLDOWN_MS = 30_000;

export type KeyLookup =
  | {
      readonly ok: true;
      readonly key: CryptoKey;
      /** Of the set the key was found in: what it proves ends with that set. */
      readonly generation: number;
    }
  | { readonly ok: false; readonly reason: "unknown_key" | "keys_unavailable" };

export interface KeySource {
  find(alg: AsymmetricAlgorithm, kid: string | undefined): Promise<KeyLookup>;
  /**
   * The number of the key set, if it may be relied on without asking the issuer first; else
   * undefined. A verified token is remembered under this number. Starts a refresh that is due.
   */
  usableGeneration(): number | undefined;
}

/** The part of `fetch` that is needed here. It must obey the signal. */
export type FetchKeys = (
  url: string,
  init: {
    readonly signal: AbortSignal;
    readonly redirect: "manual";
    readonly headers: { readonly accept: string };
  },
) => Promise<Response>;

/** Fixed keys and secrets change only with the configuration, and then their verifier is replaced. */
export const FIXED_GENERATION = 0;

/** Keys that come with the configuration. */
export class FixedKeySource implements KeySource {
  readonly #keys: KeySet;

  constructor(keys: KeySet) {
    this.#keys = keys;
  }

  async find(alg: AsymmetricAlgorithm, kid: string | undefined): Promise<KeyLookup> {
    const key = await this.#keys.find(alg, kid);
    return key === undefined
      ? { ok: false, reason: "unknown_key" }
      : { ok: true, key, generation: FIXED_GENERATION };
  }

  usableGeneration(): number {
    return FIXED_GENERATION;
  }
}

export interface RemoteKeySourceOptions {
  readonly url: string;
  readonly fetch: FetchKeys;
  readonly nowMs: () => number;
  /** Default `AbortSignal.timeout`. */
  readonly createTimeoutSignal?: ((timeoutMs: number) => AbortSignal) | undefined;
}

/** Keys behind a URL. The caller has checked the URL with `findJwksUrlProblem`. */
export class RemoteKeySource implements KeySource {
  readonly #options: RemoteKeySourceOptions;
  #keys: KeySet | undefined;
  #generation = 0;
  #fetchedAtMs = 0;
  #attemptedAtMs = -Infinity;
  /** The last failure, until a fetch succeeds. */
  #failedAtMs: number | undefined;
  #inFlight: Promise<void> | undefined;

  constructor(options: RemoteKeySourceOptions) {
    this.#options = options;
  }

  async find(alg: AsymmetricAlgorithm, kid: string | undefined): Promise<KeyLookup> {
    if (this.usableGeneration() === undefined) await this.#refresh();
    const known = await this.#findHere(alg, kid);
    if (known !== undefined) return known;
    await this.#refresh();
    const fetched = await this.#findHere(alg, kid);
    if (fetched !== undefined) return fetched;
    // With the issuer out of reach nobody can say that the key does not exist.
    const isUnsure = this.#usableKeys() === undefined || this.#failedAtMs !== undefined;
    return { ok: false, reason: isUnsure ? "keys_unavailable" : "unknown_key" };
  }

  async #findHere(
    alg: AsymmetricAlgorithm,
    kid: string | undefined,
  ): Promise<KeyLookup | undefined> {
    const generation = this.#generation;
    const key = await this.#usableKeys()?.find(alg, kid);
    return key === undefined ? undefined : { ok: true, key, generation };
  }

  usableGeneration(): number | undefined {
    const ageMs = this.#ageMs();
    if (ageMs <= JWKS_REFRESH_AFTER_MS) return this.#generation;
    const mayLag =
      ageMs <= JWKS_ASK_FIRST_AFTER_MS || (ageMs <= JWKS_STALE_MAX_MS && this.#isIssuerDown());
    if (!mayLag) return undefined;
    void this.#refresh();
    return this.#generation;
  }

  /** A try failed a short while ago. Then known keys are served at once, not after each timeout. */
  #isIssuerDown(): boolean {
    if (this.#failedAtMs === undefined) return false;
    return this.#options.nowMs() - this.#failedAtMs <= JWKS_REFRESH_AFTER_MS;
  }

  #usableKeys(): KeySet | undefined {
    return this.#ageMs() <= JWKS_STALE_MAX_MS ? this.#keys : undefined;
  }

  #ageMs(): number {
    return this.#keys === undefined ? Infinity : this.#options.nowMs() - this.#fetchedAtMs;
  }

  /** One fetch for all who ask; none during the cool-down. Never rejects. */
  #refresh(): Promise<void> {
    if (this.#inFlight !== undefined) return this.#inFlight;
    const startedAtMs = this.#options.nowMs();
    if (startedAtMs - this.#attemptedAtMs < JWKS_COOLDOWN_MS) return Promise.resolve();
    this.#attemptedAtMs = startedAtMs;
    this.#inFlight = this.#fetchKeys().then((keys) => {
      this.#inFlight = undefined;
      if (keys === undefined) {
        this.#failedAtMs = this.#options.nowMs();
        return;
      }
      this.#failedAtMs = undefined;
      this.#fetchedAtMs = startedAtMs;
      if (keys.fingerprint === this.#keys?.fingerprint) return;
      this.#keys = keys;
      this.#generation += 1;
    });
    return this.#inFlight;
  }

  /** Undefined for each way to fail: what matters to callers is only that there are no new keys. */
  async #fetchKeys(): Promise<KeySet | undefined> {
    const { url, fetch } = this.#options;
    const signal =
      this.#options.createTimeoutSignal?.(JWKS_TIMEOUT_MS) ?? AbortSignal.timeout(JWKS_TIMEOUT_MS);
    try {
      const response = await fetch(url, {
        signal,
        redirect: "manual",
        headers: { accept: "application/json" },
      });
      const text = response.status === 200 ? await readBody(response) : undefined;
      if (text === undefined) {
        await response.body?.cancel();
        return undefined;
      }
      const parsed = KeySet.parse(JSON.parse(text));
      return parsed.ok ? parsed.keys : undefined;
    } catch {
      return undefined;
    }
  }
}

/** The body as text, or undefined once it is longer than the maximum. */
async function readBody(response: Response): Promise<string | undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > JWKS_BODY_BYTES_MAX) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * What is wrong with a key set's URL, or undefined. https only; http for this very machine.
 * Private and link-local addresses behind a name are not looked at yet.
 */
export function findJwksUrlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return "is not a URL";
  if (url.username !== "" || url.password !== "") return "must not contain credentials";
  if (url.protocol === "https:") return undefined;
  if (url.protocol !== "http:") return "must be an https: URL";
  return isLoopback(url.hostname) ? undefined : "may use http: only for a loopback host";
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
