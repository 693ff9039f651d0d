// The history of one simulated cluster: what was written, where in the log, and what a failover has lost.

/** One change of one key. Stamps are unique over all history and rise along each key, so that two states can be compared. */
export interface Change {
  readonly key: number;
  readonly stamp: number;
}

export interface LogRecord {
  /** Where it ends, in bytes. */
  readonly lsn: number;
  /** Clock milliseconds when it was written. */
  readonly at: number;
  /** Of a commit; empty for any other record. */
  readonly changes: readonly Change[];
}

/** The log of one timeline, from the beginning of history. */
export class Timeline {
  readonly id: number;
  readonly records: LogRecord[];
  /** Clock milliseconds when its primary went down: what was not received by then never will be. */
  endedAt = Number.POSITIVE_INFINITY;

  constructor(id: number, records: LogRecord[]) {
    this.id = id;
    this.records = records;
  }

  get endLsn(): number {
    return this.records.at(-1)?.lsn ?? START_LSN;
  }

  append(at: number, sizeBytes: number, changes: readonly Change[]): void {
    this.records.push({ lsn: recordEnd(this.endLsn, sizeBytes), at, changes });
  }
}

export const START_LSN = 0x3000100;
export const BLOCK_BYTES = 8_192;
export const SEGMENT_BYTES = 16_777_216;
/** XLogPageHeaderData, and XLogLongPageHeaderData at the start of a segment. */
const HEADER_BYTES = 24;
const SEGMENT_HEADER_BYTES = 40;
/** Records begin at multiples of it, so that some end exactly where their page does. */
const ALIGNMENT_BYTES = 8;

/** Where the next record begins: behind the header of the next page when the last one has filled its own. */
export function insertPosition(endLsn: number): number {
  if (endLsn % BLOCK_BYTES !== 0) return endLsn;
  return endLsn + (endLsn % SEGMENT_BYTES === 0 ? SEGMENT_HEADER_BYTES : HEADER_BYTES);
}

/** A record that does not fit into its page goes on behind the next page's header. */
function recordEnd(previousEnd: number, sizeBytes: number): number {
  let at = insertPosition(previousEnd);
  let left = Math.ceil(sizeBytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
  for (;;) {
    const room = BLOCK_BYTES - (at % BLOCK_BYTES);
    if (left <= room) return at + left;
    left -= room;
    at = insertPosition(at + room);
  }
}

export function formatPosition(lsn: number): string {
  const high = Math.floor(lsn / 2 ** 32);
  return `${high.toString(16)}/${(lsn % 2 ** 32).toString(16)}`.toUpperCase();
}
