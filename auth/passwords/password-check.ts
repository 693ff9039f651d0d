// Checks cleartext passwords against verifiers, with a cache of successes and a bound on the work.
import { createHmac } from "node:crypto";
import { BoundedCache } from "../bounded-cache.ts";
import type { Secret } from "../secret.ts";
import { checkScramPassword, formatScramVerifier } from "../scram/verifier.ts";
import type { ScramVerifier } from "../scram/verifier.ts";

/** Entries of about 150 bytes: one per user and right password, since failures are not kept. */
export const PASSWORD_CACHE_COUNT_MAX = 10_000;

/**
 * PBKDF2 runs at one time. The runtime's thread pool also serves files and DNS, so checks may not
 * fill it; two of them keep the two cores of a small machine busy.
 */
export const PASSWORD_CHECKS_RUNNING_MAX = 2;

/** Checks that wait for a thread: at 3 ms and two at a time, the last one waits about 0.4 s. */
export const PASSWORD_CHECKS_WAITING_MAX = 256;

export type PasswordCheckResult = "right" | "wrong" | "busy";

export interface PasswordCheckOptions {
  /** Key of the cache's HMAC; random per process. */
  readonly processKey: Uint8Array;
  readonly cacheCountMax?: number;
  readonly runningMax?: number;
  readonly waitingMax?: number;
}

/** One per process. `clear` it when users are reloaded. */
export class PasswordCheck {
  readonly #processKey: Uint8Array;
  readonly #successes: BoundedCache<true>;
  readonly #inFlight = new Map<string, Promise<PasswordCheckResult>>();
  readonly #waiting: (() => void)[] = [];
  readonly #runningMax: number;
  readonly #waitingMax: number;
  #running = 0;
  /** Raised by `clear`, so that a check begun before it does not put its result in after it. */
  #generation = 0;

  constructor(options: PasswordCheckOptions) {
    this.#processKey = options.processKey;
    this.#successes = new BoundedCache(options.cacheCountMax ?? PASSWORD_CACHE_COUNT_MAX);
    this.#runningMax = options.runningMax ?? PASSWORD_CHECKS_RUNNING_MAX;
    this.#waitingMax = options.waitingMax ?? PASSWORD_CHECKS_WAITING_MAX;
  }

  get cachedCount(): number {
    return this.#successes.count;
  }

  /** "busy" means that the queue is full: answer 53300. Equal checks at one time are done once. */
  check(user: string, verifier: ScramVerifier, password: Secret): Promise<PasswordCheckResult> {
    const key = this.#key(user, verifier, password);
    if (this.#successes.get(key) !== undefined) return Promise.resolve("right");
    const running = this.#inFlight.get(key);
    if (running !== undefined) return running;
    if (this.#running >= this.#runningMax && this.#waiting.length >= this.#waitingMax) {
      return Promise.resolve("busy");
    }
    const result = this.#run(key, verifier, password);
    this.#inFlight.set(key, result);
    return result;
  }

  /** Forgets all successes. */
  clear(): void {
    this.#generation += 1;
    this.#successes.clear();
  }

  async #run(key: string, verifier: ScramVerifier, password: Secret): Promise<PasswordCheckResult> {
    const generation = this.#generation;
    if (this.#running >= this.#runningMax) {
      // The one who finishes hands its place on, so #running stays as it is.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      const isRight = await checkScramPassword(verifier, password);
      if (isRight && generation === this.#generation) this.#successes.set(key, true);
      return isRight ? "right" : "wrong";
    } finally {
      this.#inFlight.delete(key);
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  #key(user: string, verifier: ScramVerifier, password: Secret): string {
    // The user's length comes first and a verifier has no line end, so two triples never meet.
    return createHmac("sha256", this.#processKey)
      .update(`${Buffer.byteLength(user)}:${user}${formatScramVerifier(verifier)}\n`)
      .update(password.revealBytes())
      .digest("base64");
  }
}
