// Log sequence numbers: text to bigint and back, and the rule that makes one reachable. Pure.

/** Of one server; both are fixed when its data folder is made. */
export interface WalGeometry {
  /** wal_block_size in bytes. */
  readonly blockSize: number;
  /** wal_segment_size in bytes, a multiple of the block size. */
  readonly segmentSize: number;
}

/** pg_lsn_in takes one to eight hexadecimal digits on each side. */
const LSN_TEXT = /^([0-9a-fA-F]{1,8})\/([0-9a-fA-F]{1,8})$/;
const HALF_BITS = 32n;

/** XLogPageHeaderData, padded to 8 bytes: at the start of every page. */
const SHORT_PAGE_HEADER_BYTES = 24n;
/** XLogLongPageHeaderData: at the start of every segment. */
const LONG_PAGE_HEADER_BYTES = 40n;

/** `X/Y` as PostgreSQL prints a pg_lsn; undefined for anything else. */
export function parseLsn(text: string): bigint | undefined {
  const match = LSN_TEXT.exec(text);
  const high = match?.[1];
  const low = match?.[2];
  if (high === undefined || low === undefined) return undefined;
  return (BigInt(`0x${high}`) << HALF_BITS) | BigInt(`0x${low}`);
}

export function formatLsn(lsn: bigint): string {
  const high = lsn >> HALF_BITS;
  const low = BigInt.asUintN(Number(HALF_BITS), lsn);
  return `${high.toString(16)}/${low.toString(16)}`.toUpperCase();
}

/**
 * Moves an LSN that sits on a page header down to the page's start, where replay stops.
 *
 * When the last record ends exactly at a page's end, the insert position is reported behind the next page's
 * header, and replay stays at the boundary until another record comes: on an idle primary that took 20 s.
 * No record ends inside a header, so the lower position covers the same records. Idempotent.
 */
export function normaliseLsn(lsn: bigint, geometry: WalGeometry): bigint {
  const inSegment = lsn % BigInt(geometry.segmentSize);
  if (inSegment <= LONG_PAGE_HEADER_BYTES) return lsn - inSegment;
  const inPage = lsn % BigInt(geometry.blockSize);
  return inPage <= SHORT_PAGE_HEADER_BYTES ? lsn - inPage : lsn;
}
