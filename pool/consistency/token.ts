// Read-after-write tokens: positions as a signed text that only the gateway can make and only its audience can use.
import { createHmac, timingSafeEqual } from "node:crypto";
import { mergePositions } from "./merge-positions.ts";
import type { Position } from "./position.ts";
import { deriveTokenKeys, type TokenKeyRing } from "./token-keys.ts";
import {
  decodeTokenPositions,
  encodeTokenPayload,
  readTokenKeyId,
  TOKEN_ENTRIES_MAX,
} from "./token-payload.ts";

export type TokenReading =
  | { readonly ok: true; readonly positions: readonly Position[] }
  | { readonly ok: false; readonly reason: TokenFault };

export type TokenFault = "malformed" | "unknown_key" | "bad_mac" | "critical" | "too_long";

export interface TokenCodecOptions {
  /** At least 32 bytes each; the first signs, all verify. */
  readonly keys: readonly Uint8Array[];
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
}

/** Visible and versioned, so that another format is told apart before anything is decoded. */
const PREFIX = "wg1.";
/** 128 bits: forging one takes 2^127 tries on average, each a request. */
const TAG_BYTES = 16;
/** Eight tokens with eight entries are 2,400 characters; checked before anything is split or decoded. */
export const TOKEN_TEXT_CHARACTERS_MAX = 4096;
/** Parallel requests that a caller joins again. */
export const TOKENS_MAX = 8;
const MAC_DOMAIN = "walgate-token-v1\0";
const MS_PER_S = 1000;

export class TokenCodec {
  readonly #keys: TokenKeyRing;
  readonly #wallNow: () => number;

  /** Throws RangeError for no key or a short one. */
  constructor(options: TokenCodecOptions) {
    this.#keys = deriveTokenKeys(options.keys);
    this.#wallNow = options.wallNow;
  }

  /** `audience` comes from `tokenAudience`. Throws RangeError unless there are 1 to 8 positions. */
  mint(positions: readonly Position[], audience: string): string {
    const { signing } = this.#keys;
    const issuedAtS = Math.floor(this.#wallNow() / MS_PER_S);
    const payload = encodeTokenPayload({ keyId: signing.id, issuedAtS, positions });
    const token = Buffer.concat([payload, tag(signing.mac, audience, payload)]);
    return PREFIX + token.toString("base64url");
  }

  /** One token, or several joined by commas as HTTP joins repeated headers; one bad token spoils all. */
  read(text: string, audience: string): TokenReading {
    if (text.length > TOKEN_TEXT_CHARACTERS_MAX) return { ok: false, reason: "too_long" };
    const tokens = text.split(",");
    if (tokens.length > TOKENS_MAX) return { ok: false, reason: "too_long" };
    let positions: readonly Position[] = [];
    for (const token of tokens) {
      const reading = this.#readOne(token.trim(), audience);
      if (!reading.ok) return reading;
      positions = mergePositions(positions, reading.positions);
    }
    if (positions.length > TOKEN_ENTRIES_MAX) return { ok: false, reason: "too_long" };
    return { ok: true, positions };
  }

  #readOne(token: string, audience: string): TokenReading {
    const bytes = token.startsWith(PREFIX)
      ? decodeBase64url(token.slice(PREFIX.length))
      : undefined;
    if (bytes === undefined || bytes.byteLength < TAG_BYTES) return fault("malformed");
    const payload = bytes.subarray(0, -TAG_BYTES);
    const keyId = readTokenKeyId(payload);
    if (keyId === undefined) return fault("malformed");

    const keys = this.#keys.withId(keyId);
    if (keys.length === 0) return fault("unknown_key");
    const given = bytes.subarray(-TAG_BYTES);
    const isOurs = keys.some((key) => timingSafeEqual(tag(key.mac, audience, payload), given));
    if (!isOurs) return fault("bad_mac");

    const positions = decodeTokenPositions(payload);
    return positions === "critical" ? fault("critical") : { ok: true, positions };
  }
}

/** The audience holds no NUL (`tokenAudience`), so where it ends cannot be argued about. */
function tag(key: Uint8Array, audience: string, payload: Uint8Array): Buffer {
  return createHmac("sha256", key)
    .update(`${MAC_DOMAIN}${audience}\0`)
    .update(payload)
    .digest()
    .subarray(0, TAG_BYTES);
}

/** Node skips characters that it does not know; writing the bytes again shows whether there were any. */
function decodeBase64url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}

function fault(reason: TokenFault): TokenReading {
  return { ok: false, reason };
}
