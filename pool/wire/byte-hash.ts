// Hashes texts where they lie in a chunk, for tables that are looked into without making a string.
import { getRandomValues } from "node:crypto";

/** Of the bytes in `source` from `start` to `end`: a 32-bit integer. */
export type ByteHash = (source: Uint8Array, start: number, end: number) => number;

// Of each process its own, so that nobody can prepare texts that share a hash.
const [SEED = 0] = getRandomValues(new Int32Array(1));

/** FNV-1a from a secret start. */
export function hashBytes(source: Uint8Array, start: number, end: number): number {
  let hash = SEED;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (source[at] ?? 0), 0x01000193);
  return hash;
}
