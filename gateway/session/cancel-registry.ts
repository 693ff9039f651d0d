// Cancel keys of client sessions: what a CancelRequest names, and who it reaches.
import type { Clock } from "#pool/time/clock.ts";
import { writeInt32 } from "#pool/wire/message-types.ts";

/** Bits of the secret of protocol 3.0, from the top: worker, peer, random. The process id is the client's number. */
const WORKER_BITS = 6;
const PEER_BITS = 5;
const RANDOM_BITS = 32 - WORKER_BITS - PEER_BITS;

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

interface Entry {
  readonly secretKey: Uint8Array;
  readonly cancel: () => void;
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

  register(cancel: () => void): CancelKey {
    do {
      this.#lastNumber = this.#lastNumber === CLIENT_NUMBER_MAX ? 1 : this.#lastNumber + 1;
    } while (this.#entries.has(this.#lastNumber));
    const secretKey = this.#secret();
    this.#entries.set(this.#lastNumber, { secretKey, cancel });
    return { processId: this.#lastNumber, secretKey };
  }

  unregister(key: CancelKey): void {
    this.#entries.delete(key.processId);
  }

  /** As PostgreSQL, it says nothing about the outcome to whoever asks; the return value is for counters. */
  request(key: CancelKey, address: string): "canceled" | "wrong_key" | "rate_limited" {
    const bucket = this.#bucket(address);
    if (bucket.tokens < 1) return "rate_limited";
    const entry = this.#entries.get(key.processId);
    if (entry === undefined || !isEqual(entry.secretKey, key.secretKey)) {
      bucket.tokens--;
      return "wrong_key";
    }
    entry.cancel();
    return "canceled";
  }

  #secret(): Uint8Array {
    const { workerId, peerId, randomBytes } = this.#options;
    const [a = 0, b = 0, c = 0] = randomBytes(3);
    const random = ((a << 16) | (b << 8) | c) & ((1 << RANDOM_BITS) - 1);
    const secretKey = new Uint8Array(4);
    writeInt32(secretKey, 0, (workerId << (32 - WORKER_BITS)) | (peerId << RANDOM_BITS) | random);
    return secretKey;
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

/** In constant time over the bytes. */
function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
