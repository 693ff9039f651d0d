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
    this.records.push({ lsn: recordEnd(this.endLsn + sizeBytes), at, changes });
  }

  /** How many records end at or before `lsn`. */
  countUpTo(lsn: number): number {
    let count = this.records.length;
    while (count > 0 && (this.records[count - 1]?.lsn ?? 0) > lsn) count--;
    return count;
  }
}

export const START_LSN = 0x3000100;
export const BLOCK_BYTES = 8_192;
export const SEGMENT_BYTES = 16_777_216;
/** Of a segment's first page; no record ends inside a page's header. */
const HEADER_BYTES_MAX = 40;

function recordEnd(lsn: number): number {
  const inPage = lsn % BLOCK_BYTES;
  return inPage <= HEADER_BYTES_MAX ? lsn + HEADER_BYTES_MAX + 8 - inPage : lsn;
}

export function formatPosition(lsn: number): string {
  const high = Math.floor(lsn / 2 ** 32);
  return `${high.toString(16)}/${(lsn % 2 ** 32).toString(16)}`.toUpperCase();
}
