// The bytes of a token that are signed: written and read here, and nowhere else. Pure.
import type { Position } from "./position.ts";

/*
 * Big-endian:
 *
 *   0        1       2        3         4            8
 *   +--------+-------+--------+---------+------------+----------------------------
 *   | format | flags | key id | entries | issued (s) | entries × 24 bytes
 *   +--------+-------+--------+---------+------------+----------------------------
 *
 *   entry:  u64 system identifier | u32 timeline | u32 reserved (0) | u64 LSN
 */
const HEADER_BYTES = 8;
const ENTRY_BYTES = 24;
const FORMAT = 1;
const FLAGS_AT = 1;
const KEY_ID_AT = 2;
const ENTRIES_AT = 3;
const ISSUED_AT = 4;
/** In bits 4 to 7 a later version says that an older reader must not act on the token. */
const CRITICAL_FLAGS = 0xf0;
const U32_MAX = 0xffff_ffff;
const U64_MAX = 0xffff_ffff_ffff_ffffn;

/** Two clusters during a migration, each with the timelines of a few failovers. */
export const TOKEN_ENTRIES_MAX = 8;

export interface TokenPayload {
  readonly keyId: number;
  /** Seconds since 1970; for diagnosis, nothing is decided by it. */
  readonly issuedAtS: number;
  readonly positions: readonly Position[];
}

/** Throws RangeError when a number does not fit its field or the entries are not 1 to 8. */
export function encodeTokenPayload(payload: TokenPayload): Uint8Array {
  const count = payload.positions.length;
  if (count < 1 || count > TOKEN_ENTRIES_MAX) {
    throw new RangeError(`A token holds 1 to ${TOKEN_ENTRIES_MAX} positions, not ${count}.`);
  }
  const bytes = new Uint8Array(HEADER_BYTES + count * ENTRY_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, FORMAT);
  view.setUint8(KEY_ID_AT, payload.keyId);
  view.setUint8(ENTRIES_AT, count);
  view.setUint32(ISSUED_AT, Math.min(Math.max(0, payload.issuedAtS), U32_MAX));
  let at = HEADER_BYTES;
  for (const { systemIdentifier, timeline, lsn } of payload.positions) {
    if (!isU64(systemIdentifier) || !isU64(lsn) || timeline < 0 || timeline > U32_MAX) {
      throw new RangeError("A position does not fit its fields in a token.");
    }
    view.setBigUint64(at, systemIdentifier);
    view.setUint32(at + 8, timeline);
    view.setBigUint64(at + 16, lsn);
    at += ENTRY_BYTES;
  }
  return bytes;
}

/** What is needed to find the key, before anything in the payload is believed. */
export function readTokenKeyId(payload: Uint8Array): number | undefined {
  const count = payload[ENTRIES_AT];
  const isWhole =
    payload[0] === FORMAT &&
    count !== undefined &&
    count >= 1 &&
    count <= TOKEN_ENTRIES_MAX &&
    payload.byteLength === HEADER_BYTES + count * ENTRY_BYTES;
  return isWhole ? payload[KEY_ID_AT] : undefined;
}

/** Only for a payload whose signature verified and whose shape `readTokenKeyId` accepted. */
export function decodeTokenPositions(payload: Uint8Array): readonly Position[] | "critical" {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  if ((view.getUint8(FLAGS_AT) & CRITICAL_FLAGS) !== 0) return "critical";
  const positions: Position[] = [];
  for (let at = HEADER_BYTES; at < payload.byteLength; at += ENTRY_BYTES) {
    positions.push({
      systemIdentifier: view.getBigUint64(at),
      timeline: view.getUint32(at + 8),
      lsn: view.getBigUint64(at + 16),
    });
  }
  return positions;
}

function isU64(value: bigint): boolean {
  return value >= 0n && value <= U64_MAX;
}
