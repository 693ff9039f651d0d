// Two ends of a SCRAM exchange for the tests of auth/, with a verifier that is cheap to derive.
import { ScramClientExchange } from "#auth/scram/client-exchange.ts";
import { ScramKeyCache } from "#auth/scram/key-cache.ts";
import { ScramServerExchange } from "#auth/scram/server-exchange.ts";
import { deriveScramVerifier } from "#auth/scram/verifier.ts";
import type { ScramVerifier } from "#auth/scram/verifier.ts";
import type { AuthResult, Identity } from "#auth/identity.ts";
import { Secret } from "#auth/secret.ts";

export const PASSWORD = "pencil";
export const ITERATIONS = 2;
export const SALT: Uint8Array = new Uint8Array(16).fill(5);

export const IDENTITY: Identity = {
  subject: "app",
  tenant: "app",
  method: "scram-sha-256",
  claims: {},
  profile: "server",
  expiresAtMs: undefined,
};

export const verifier: ScramVerifier = await deriveScramVerifier(
  new Secret(PASSWORD),
  SALT,
  ITERATIONS,
);

/** Bytes that all have the same value: a nonce that the tests can know. */
export function fixedBytes(value: number): (size: number) => Uint8Array {
  return (size) => new Uint8Array(size).fill(value);
}

export function createClient(
  password: string = PASSWORD,
  channelBinding?: Uint8Array,
): ScramClientExchange {
  return new ScramClientExchange({
    password: new Secret(password),
    randomBytes: fixedBytes(1),
    channelBinding,
    keyCache: new ScramKeyCache(),
  });
}

export function createServer(
  outcome: AuthResult = { ok: true, identity: IDENTITY },
  stored: ScramVerifier = verifier,
): ScramServerExchange {
  return new ScramServerExchange({
    user: "app",
    verifier: () => Promise.resolve(stored),
    outcome,
    randomBytes: fixedBytes(2),
  });
}

export function toBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function toText(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
