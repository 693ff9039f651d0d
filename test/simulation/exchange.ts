// One request of a simulated client: what it expects, what came, and whether both agree.
import { Backend, readInt32 } from "#pool/wire/message-types.ts";
import { readErrorFields } from "#pool/wire/backend-messages.ts";
import type { Findings } from "./findings.ts";

export interface Expected {
  readonly kind: "read" | "write" | "big" | "lock";
  readonly tag: string;
  readonly key: number;
  /** What a read must show, or something later: the latest of these stamps that no failover has lost. */
  readonly known: readonly number[];
}

export interface Row {
  readonly expected: Expected;
  readonly stamp: number;
}

const IGNORED: ReadonlySet<number> = new Set([
  Backend.PARSE_COMPLETE,
  Backend.BIND_COMPLETE,
  Backend.CLOSE_COMPLETE,
  Backend.NO_DATA,
  Backend.ROW_DESCRIPTION,
  Backend.PARAMETER_DESCRIPTION,
  Backend.COMMAND_COMPLETE,
  Backend.EMPTY_QUERY_RESPONSE,
  Backend.PARAMETER_STATUS,
  Backend.NOTICE_RESPONSE,
]);

export class Exchange {
  readonly sentAt: number;
  readonly rows: Row[] = [];
  /** Values of rows without a tag, as SHOW gives. */
  readonly values: string[] = [];
  readonly sqlStates: string[] = [];
  /** Transaction status of the last ReadyForQuery. */
  status = "";
  readonly #expected: readonly Expected[];
  readonly #findings: Findings;
  readonly #client: string;
  #next = 0;
  #readyLeft: number;

  constructor(
    client: string,
    sentAt: number,
    expected: readonly Expected[],
    readyCount: number,
    findings: Findings,
  ) {
    this.#client = client;
    this.sentAt = sentAt;
    this.#expected = expected;
    this.#readyLeft = readyCount;
    this.#findings = findings;
  }

  /** All of it has been answered. */
  get isDone(): boolean {
    return this.#readyLeft === 0;
  }

  get hasFailed(): boolean {
    return this.sqlStates.length > 0;
  }

  answer(type: number, chunk: Uint8Array, start: number, end: number): void {
    if (type === Backend.DATA_ROW) {
      this.#row(readCells(chunk, start));
    } else if (type === Backend.ERROR_RESPONSE) {
      this.sqlStates.push(readErrorFields(chunk.subarray(start, end)).get("C") ?? "");
    } else if (type === Backend.READY_FOR_QUERY) {
      this.#readyLeft--;
      this.status = String.fromCharCode(chunk[end - 1] ?? 0);
      if (this.#readyLeft === 0) this.#check();
    } else if (!IGNORED.has(type)) {
      this.#findings.report("valid protocol", `${this.#client} got ${String.fromCharCode(type)}`);
    }
  }

  #row(cells: readonly string[]): void {
    const [tag = "", value = ""] = cells;
    if (cells.length < 2) {
      this.values.push(tag);
      return;
    }
    // Those between were skipped behind an error.
    for (; this.#next < this.#expected.length; this.#next++) {
      const expected = this.#expected[this.#next];
      if (expected?.tag !== tag) continue;
      this.#next++;
      this.rows.push({ expected, stamp: Number(value) });
      return;
    }
    this.#findings.report("own answers", `${this.#client} got the answer to ${tag}`);
  }

  #check(): void {
    if (this.hasFailed || this.rows.length === this.#expected.length) return;
    const detail = `${this.#client} got ${this.rows.length} of ${this.#expected.length} rows`;
    this.#findings.report("valid protocol", detail);
  }
}

/** Of a row whose first two columns are short; a long second one is not read. */
function readCells(chunk: Uint8Array, start: number): string[] {
  const count = ((chunk[start + 5] ?? 0) << 8) | (chunk[start + 6] ?? 0);
  const cells: string[] = [];
  let at = start + 7;
  for (let i = 0; i < count; i++) {
    const size = Math.max(0, readInt32(chunk, at));
    at += 4;
    cells.push(size > 64 ? "" : Buffer.prototype.toString.call(chunk, "latin1", at, at + size));
    at += size;
  }
  return cells;
}
