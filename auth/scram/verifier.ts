// PostgreSQL's stored form of a SCRAM-SHA-256 password: parse, format, derive and check.
import { createHash, createHmac, pbkdf2, timingSafeEqual } from "node:crypto";
import type { Secret } from "../secret.ts";
import {
  decodeBase64,
  encodeBase64,
  parseScramIterations,
  SCRAM_ITERATIONS_MAX,
  SCRAM_KEY_BYTES,
} from "./messages.ts";
import { prepareScramPassword } from "./saslprep.ts";

/** PostgreSQL's default for scram_iterations. */
export const SCRAM_ITERATIONS_DEFAULT = 4096;

/** PostgreSQL's SCRAM_DEFAULT_SALT_LEN. */
export const SCRAM_SALT_BYTES = 16;

/** Far above any real salt; keeps a broken verifier from filling each server-first message. */
const SALT_BYTES_MAX = 1024;

/** What a server keeps of a password: enough to check a proof, not enough to make one. */
export interface ScramVerifier {
  readonly iterations: number;
  readonly salt: Uint8Array;
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

/** The client's side of the same derivation. */
export interface ScramKeys {
  readonly clientKey: Uint8Array;
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

const VERIFIER = /^SCRAM-SHA-256\$([0-9]+):([^$:]+)\$([^$:]+):([^$:]+)$/;

/** Reads `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`; undefined if it is not one. */
export function parseScramVerifier(text: string): ScramVerifier | undefined {
  const match = VERIFIER.exec(text);
  if (match === null) return undefined;
  const iterations = parseScramIterations(match[1] ?? "");
  const salt = decodeBase64(match[2] ?? "");
  const storedKey = decodeBase64(match[3] ?? "");
  const serverKey = decodeBase64(match[4] ?? "");
  if (iterations === undefined || salt === undefined) return undefined;
  if (salt.byteLength === 0 || salt.byteLength > SALT_BYTES_MAX) return undefined;
  if (storedKey?.byteLength !== SCRAM_KEY_BYTES) return undefined;
  if (serverKey?.byteLength !== SCRAM_KEY_BYTES) return undefined;
  return { iterations, salt, storedKey, serverKey };
}

/** The inverse of `parseScramVerifier`. The text is as sensitive as a password hash. */
export function formatScramVerifier(verifier: ScramVerifier): string {
  const salt = encodeBase64(verifier.salt);
  const keys = `${encodeBase64(verifier.storedKey)}:${encodeBase64(verifier.serverKey)}`;
  return `SCRAM-SHA-256$${verifier.iterations}:${salt}$${keys}`;
}

/**
 * Derives a verifier from a password. PBKDF2 runs on the thread pool (about 3 ms at 4096 rounds).
 * @throws RangeError if the iterations are outside 1 to SCRAM_ITERATIONS_MAX: a caller's mistake.
 */
export async function deriveScramVerifier(
  password: Secret,
  salt: Uint8Array,
  iterations: number = SCRAM_ITERATIONS_DEFAULT,
): Promise<ScramVerifier> {
  const keys = await deriveScramKeys(password, salt, iterations);
  return {
    iterations,
    salt: Uint8Array.from(salt),
    storedKey: keys.storedKey,
    serverKey: keys.serverKey,
  };
}

/** Checks a cleartext password. The comparison is timing safe; the cost is one PBKDF2. */
export async function checkScramPassword(
  verifier: ScramVerifier,
  password: Secret,
): Promise<boolean> {
  const keys = await deriveScramKeys(password, verifier.salt, verifier.iterations);
  return timingSafeEqual(keys.storedKey, verifier.storedKey);
}

/** RFC 5802, "SCRAM Algorithm Overview": SaltedPassword and the keys made from it. */
export async function deriveScramKeys(
  password: Secret,
  salt: Uint8Array,
  iterations: number,
): Promise<ScramKeys> {
  const saltedPassword = await saltPassword(password, salt, iterations);
  const clientKey = hmacSha256(saltedPassword, "Client Key");
  return {
    clientKey,
    storedKey: sha256(clientKey),
    serverKey: hmacSha256(saltedPassword, "Server Key"),
  };
}

export function hmacSha256(key: Uint8Array, data: string | Uint8Array): Uint8Array {
  return Uint8Array.from(createHmac("sha256", key).update(data).digest());
}

export function sha256(data: Uint8Array): Uint8Array {
  return Uint8Array.from(createHash("sha256").update(data).digest());
}

function saltPassword(password: Secret, salt: Uint8Array, iterations: number): Promise<Uint8Array> {
  if (!Number.isInteger(iterations) || iterations < 1 || iterations > SCRAM_ITERATIONS_MAX) {
    throw new RangeError("SCRAM iterations are out of range");
  }
  const text = prepareScramPassword(password.reveal());
  return new Promise((resolve, reject) => {
    pbkdf2(text, salt, iterations, SCRAM_KEY_BYTES, "sha256", (error, key) => {
      if (error === null) resolve(Uint8Array.from(key));
      else reject(error);
    });
  });
}
