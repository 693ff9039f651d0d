// A bounded cache of what is known about texts, found by their bytes: a hit makes no string.
import { type ByteHash, hashBytes } from "../wire/byte-hash.ts";
import { isRange } from "../wire/message-types.ts";

interface Entry<Value> {
  readonly bytes: Uint8Array;
  readonly value: Value;
}

export interface TextTableLimits {
  readonly entriesMax: number;
  /** Of all texts together. */
  readonly bytesMax: number;
}

export class TextTable<Value extends object> {
  // Two generations by the texts' hashes: what is used moves to the young one, and when that has half of the allowance the old one goes.
  // A hit then costs one lookup, where an exact order of use costs two changes of the map. Of two texts with one hash the latest stays.
  #young = new Map<number, Entry<Value>>();
  #old = new Map<number, Entry<Value>>();
  /** Of the young generation's texts. */
  #youngBytes = 0;
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #hash: ByteHash;

  constructor(limits: TextTableLimits, hash: ByteHash = hashBytes) {
    this.#hash = hash;
    this.#entriesMax = Math.ceil(limits.entriesMax / 2);
    this.#bytesMax = limits.bytesMax / 2;
  }

  /** What was kept for the text in `source` from `start` to `end`. */
  find(source: Uint8Array, start: number, end: number): Value | undefined {
    const hash = this.#hash(source, start, end);
    const young = this.#young.get(hash);
    if (young !== undefined && isRange(young.bytes, source, start, end)) return young.value;
    const old = this.#old.get(hash);
    if (old === undefined || !isRange(old.bytes, source, start, end)) return undefined;
    this.#add(hash, old);
    return old.value;
  }

  keep(source: Uint8Array, start: number, end: number, value: Value): void {
    this.#add(this.#hash(source, start, end), { bytes: source.slice(start, end), value });
  }

  #add(hash: number, entry: Entry<Value>): void {
    const { length } = entry.bytes;
    if (this.#young.size >= this.#entriesMax || this.#youngBytes + length > this.#bytesMax) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#youngBytes += length - (this.#young.get(hash)?.bytes.length ?? 0);
    this.#young.set(hash, entry);
  }
}
