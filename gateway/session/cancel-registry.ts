// Cancel keys of client sessions: what a CancelRequest names, and who it reaches.
import type { Clock } from "#pool/time/clock.ts";
import { readInt32, writeInt32 } from "#pool/wire/message-types.ts";

/** Bits of the secret of protocol 3.0, from the top: worker, peer, random. The process id is the client's number. */
const WORKER_BITS = 6;
const PEER_BITS = 5;
const RANDOM_BITS = 32 - WORKER_BITS - PEER_BITS;
const SECRET_BYTES = 4;

/** 21 random bits can be guessed by trying, so an address gets few wrong keys: this many, refilled one a second. */
const WRONG_KEYS_MAX = 10;
const REFILL_MS = 1_000;
/** Addresses remembered for wrong keys; past it the oldest is forgotten. */
const ADDRESSES_MAX = 10_000;
const CLIENT_NUMBER_MAX = 0x7fff_ffff;

export interface CancelKey {
  readonly processId: number;
  readonly secretKey: Uint8Array;
}

/** Whoever is to hear of a cancel request. */
export interface CancelTarget {
  cancel(): void;
}

/** The secret as a number: an array for each client would cost more than all else that is kept of it here. */
interface Entry {
  readonly secret: number;
  readonly target: CancelTarget;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

export interface CancelRegistryOptions {
  readonly clock: Clock;
  readonly workerId: number;
  readonly peerId: number;
  readonly randomBytes: (count: number) => Uint8Array;
}

export class CancelRegistry {
  readonly #options: CancelRegistryOptions;
  readonly #entries = new Map<number, Entry>();
  readonly #wrong = new Map<string, Bucket>();
  #lastNumber = 0;

  constructor(options: CancelRegistryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  register(target: CancelTarget): CancelKey {
    do {
      this.#lastNumber = this.#lastNumber === CLIENT_NUMBER_MAX ? 1 : this.#lastNumber + 1;
    } while (this.#entries.has(this.#lastNumber));
    const secret = this.#secret();
    this.#entries.set(this.#lastNumber, { secret, target });
    const secretKey = new Uint8Array(SECRET_BYTES);
    writeInt32(secretKey, 0, secret);
    return { processId: this.#lastNumber, secretKey };
  }

  unregister(processId: number): void {
    this.#entries.delete(processId);
  }

  /** As PostgreSQL, it says nothing about the outcome to whoever asks; the return value is for counters. */
  request(key: CancelKey, address: string): "canceled" | "wrong_key" | "rate_limited" {
    const bucket = this.#bucket(address);
    if (bucket.tokens < 1) return "rate_limited";
    const entry = this.#entries.get(key.processId);
    if (entry === undefined || !isSecret(key.secretKey, entry.secret)) {
      bucket.tokens--;
      return "wrong_key";
    }
    entry.target.cancel();
    return "canceled";
  }

  #secret(): number {
    const { workerId, peerId, randomBytes } = this.#options;
    const [a = 0, b = 0, c = 0] = randomBytes(3);
    const random = ((a << 16) | (b << 8) | c) & ((1 << RANDOM_BITS) - 1);
    return (workerId << (32 - WORKER_BITS)) | (peerId << RANDOM_BITS) | random;
  }

  #bucket(address: string): Bucket {
    const now = this.#options.clock.now();
    const known = this.#wrong.get(address);
    if (known === undefined) {
      const bucket = { tokens: WRONG_KEYS_MAX, filledAt: now };
      if (this.#wrong.size >= ADDRESSES_MAX) {
        for (const oldest of this.#wrong.keys()) {
          this.#wrong.delete(oldest);
          break;
        }
      }
      this.#wrong.set(address, bucket);
      return bucket;
    }
    const refill = Math.floor((now - known.filledAt) / REFILL_MS);
    known.tokens = Math.min(WRONG_KEYS_MAX, known.tokens + refill);
    known.filledAt += refill * REFILL_MS;
    return known;
  }
}

/** In constant time: one comparison of all bits. */
function isSecret(secretKey: Uint8Array, secret: number): boolean {
  return secretKey.length === SECRET_BYTES && readInt32(secretKey, 0) === secret;
}
