// The messages of one client up to the next Sync, kept until it is known who may serve them.
import type { ClientStatements } from "./client-statements.ts";
import type { Operation } from "./operation.ts";
import { classOf, needsUnknownText } from "./operation-class.ts";

/** A longer segment is not kept any further: it goes to the primary as far as it is. */
const SEGMENT_BYTES_MAX = 65_536;

export class Segment {
  #operations: Operation[] = [];
  #bytes = 0;
  #isRead = false;
  #isOther = false;
  #isWhole = false;

  get isEmpty(): boolean {
    return this.#operations.length === 0;
  }

  get isFull(): boolean {
    return this.#bytes > SEGMENT_BYTES_MAX;
  }

  /** Every text in it is proven read-only, there is one, and nothing can follow before the server is ready. */
  get isRead(): boolean {
    return this.#isRead && !this.#isOther && this.#isWhole;
  }

  /** It ends in a message that is answered with ReadyForQuery. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  get isSyncOnly(): boolean {
    return this.#operations.length === 1 && this.#operations[0]?.kind === "sync";
  }

  add(operation: Operation): void {
    this.#operations.push(operation);
    this.#bytes += sizeOf(operation);
    const { kind } = operation;
    if (kind === "sync" || kind === "query" || kind === "refused_query") this.#isWhole = true;
    // A Query behind messages without their Sync: after an error in those the server skips it, and is not ready behind it.
    if (kind === "query" && this.#operations.length > 1) this.#isOther = true;
    if (kind === "function_call") {
      this.#isWhole = true;
      this.#isOther = true;
    }
    // A copy whose data does not wait for CopyInResponse.
    if (kind === "copy_data" || kind === "copy_end") this.#isOther = true;
    const statementClass = classOf(operation);
    if (statementClass?.access === "read") this.#isRead = true;
    else if (statementClass !== undefined || needsUnknownText(operation)) this.#isOther = true;
  }

  /** Everything gathered, in order; the segment is empty afterwards. */
  take(): readonly Operation[] {
    const operations = this.#operations;
    this.clear();
    return operations;
  }

  /** The segment will not be sent: the client's statements are as if it had failed at its first message. */
  undo(statements: ClientStatements): void {
    for (const operation of this.#operations) {
      if (operation.kind === "parse") statements.undoParse(operation.statement);
      if (operation.kind === "close_statement" && operation.statement !== undefined) {
        statements.undoClose(operation.statement);
      }
    }
    statements.settle();
    this.clear();
  }

  clear(): void {
    this.#operations = [];
    this.#bytes = 0;
    this.#isRead = false;
    this.#isOther = false;
    this.#isWhole = false;
  }
}

/** What it keeps in memory; an error of ours may quote a long name. */
function sizeOf(operation: Operation): number {
  if (operation.kind === "fail") return operation.error.length;
  if (operation.kind === "refused_query") return operation.answer.length;
  return operation.end - operation.start;
}
