// The keys that sign tokens: derived from configured secrets, found again by the one-byte id in a token.
import { hkdfSync } from "node:crypto";

export interface TokenKey {
  /** Fits one byte; two secrets may share one, so it narrows the search and never decides. */
  readonly id: number;
  readonly mac: Uint8Array;
}

export interface TokenKeyRing {
  readonly signing: TokenKey;
  /** All keys that a token with this id may be signed with; empty for an unknown id. */
  withId(id: number): readonly TokenKey[];
}

/** A secret shorter than the MAC's output would be the weakest part of the token. */
export const TOKEN_SECRET_BYTES_MIN = 32;

const MAC_KEY_BYTES = 32;
/** One purpose per derived value: the id is public and tells nothing about the MAC key. */
const MAC_PURPOSE = "walgate token mac 1";
const ID_PURPOSE = "walgate token key id 1";

/** The first secret signs, all verify. Throws RangeError for no secret or a short one. */
export function deriveTokenKeys(secrets: readonly Uint8Array[]): TokenKeyRing {
  const keys = secrets.map(deriveTokenKey);
  const [signing] = keys;
  if (signing === undefined) throw new RangeError("A token key ring needs at least one secret.");
  return { signing, withId: (id) => keys.filter((key) => key.id === id) };
}

function deriveTokenKey(secret: Uint8Array): TokenKey {
  if (secret.byteLength < TOKEN_SECRET_BYTES_MIN) {
    throw new RangeError(`A token secret has at least ${TOKEN_SECRET_BYTES_MIN} bytes.`);
  }
  const [id = 0] = derive(secret, ID_PURPOSE, 1);
  return { id, mac: derive(secret, MAC_PURPOSE, MAC_KEY_BYTES) };
}

function derive(secret: Uint8Array, purpose: string, bytes: number): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), purpose, bytes));
}
