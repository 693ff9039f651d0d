// Gives the memory of a large chunk back without waiting for the collector, which sees only the small object in front of it and comes late.

/** Releasing costs a microsecond: little beside the copying of so many bytes, and what is smaller does not add up to much. */
export const RELEASE_BYTES_MIN = 4_096;

/**
 * For whoever is alone in having `bytes`: afterwards they are empty, and so is every view of their memory. Does nothing to a chunk
 * that is small, or part of larger memory.
 */
export function releaseBytes(bytes: Uint8Array): void {
  if (bytes.length < RELEASE_BYTES_MIN) return;
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length) buffer.transfer(0);
}
