// A verifier nobody has the password of, so that an unknown user cannot be told from a known one.
import { hmacSha256, SCRAM_ITERATIONS_DEFAULT, SCRAM_SALT_BYTES } from "./verifier.ts";
import type { ScramVerifier } from "./verifier.ts";

/** What a client can see of a verifier before it proves anything. */
export interface ScramVerifierShape {
  readonly iterations: number;
  readonly saltBytes: number;
}

export const SCRAM_SHAPE_DEFAULT: ScramVerifierShape = {
  iterations: SCRAM_ITERATIONS_DEFAULT,
  saltBytes: SCRAM_SALT_BYTES,
};

/**
 * The same name gets the same salt as long as the key lives: a salt that changed from one try to
 * the next would give the mock away. `shapes` are those of the real users, so that iterations and
 * salt length do not stand out either.
 */
export function mockScramVerifier(
  processKey: Uint8Array,
  user: string,
  shapes: readonly ScramVerifierShape[],
): ScramVerifier {
  const pick = Buffer.from(hmacSha256(processKey, `shape:${user}`)).readUInt32BE(0);
  const shape = shapes[pick % shapes.length] ?? SCRAM_SHAPE_DEFAULT;
  const salt = new Uint8Array(shape.saltBytes);
  for (let offset = 0, block = 0; offset < salt.byteLength; block += 1) {
    const bytes = hmacSha256(processKey, `salt:${block}:${user}`);
    salt.set(bytes.subarray(0, salt.byteLength - offset), offset);
    offset += bytes.byteLength;
  }
  return {
    iterations: shape.iterations,
    salt,
    storedKey: hmacSha256(processKey, `stored:${user}`),
    serverKey: hmacSha256(processKey, `server:${user}`),
  };
}
