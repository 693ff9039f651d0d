// Reads a server's bytes against the reply plan: forwards runs of frames untouched, looks inside the few that state depends on.
import { RELEASE_BYTES_MIN, releaseBytes } from "../transport/release-bytes.ts";
import { readErrorFields } from "../wire/backend-messages.ts";
import { Backend, HEADER_BYTES, concatBytes, readInt32 } from "../wire/message-types.ts";
import { Expect, Fate, type ReplyPlan } from "./reply-plan.ts";

/** Frames that must be whole before they are understood are small; a server that claims more is not speaking the protocol. */
const WHOLE_REPLY_MAX = 1_048_576;
/** An error may quote a value of any size. Severity and SQLSTATE come first, so this much of it is enough to judge it by. */
const ERROR_PREFIX_MAX = 8_192;

/**
 * Who gets the answers. Everything is called while bytes are being read: only `forward` may lead to work elsewhere. Nobody may keep
 * what they are given here, for large chunks are released once they have been read: who needs bytes later copies them.
 */
export interface ReplySink {
  /** Bytes for the client: whole frames, or parts of one. Fewer than `RELEASE_BYTES_MIN` stay as they are afterwards. */
  forward(bytes: Uint8Array): void;
}

/** What the connection itself wants to know. */
export interface ReplyObserver {
  /** ReadyForQuery, forwarded or not. */
  readyForQuery(status: number): void;
  parameterStatus(frame: Uint8Array): void;
  /** It lies in `chunk` from `start` to `end`. */
  commandComplete(chunk: Uint8Array, start: number, end: number): void;
  /** CopyInResponse: the server reads copy data. `isOpen`: the copy's end has not been sent yet. */
  copyIn(isOpen: boolean): void;
  /** An ErrorResponse after which the server closes: FATAL, or in answer to nothing. The client has not been given it. */
  fatalError(prefix: Uint8Array): void;
  /** Any other ErrorResponse, forwarded or not. */
  errorResponse(prefix: Uint8Array): void;
  violation(reason: string): void;
}

export class ReplyReader {
  readonly #plan: ReplyPlan;
  readonly #observer: ReplyObserver;
  sink: ReplySink | undefined;
  /** The beginning of a frame that must be whole, or of a header. */
  #tail: Uint8Array | undefined;
  /** Bytes still to come of a frame that is passed on or dropped as it arrives. */
  #bodyLeft = 0;
  #isBodyForwarded = true;
  #isBroken = false;
  #chunk: Uint8Array = EMPTY;
  /** Start of the frame being judged. */
  #offset = 0;
  /** Start of the run of bytes to forward, or -1. */
  #runStart = -1;

  constructor(plan: ReplyPlan, observer: ReplyObserver) {
    this.#plan = plan;
    this.#observer = observer;
  }

  /** True when the client has been given part of a frame whose rest has not come. */
  get isMidForward(): boolean {
    return this.#bodyLeft > 0 && this.#isBodyForwarded;
  }

  get hasPartialFrame(): boolean {
    return this.#bodyLeft > 0 || this.#tail !== undefined;
  }

  /** The connection is gone: the rest of what was received is not looked at. */
  stop(): void {
    this.#isBroken = true;
    this.sink = undefined;
  }

  /** `bytes` may be released afterwards. */
  receive(bytes: Uint8Array): void {
    if (this.#isBroken) return;
    const chunk = this.#tail === undefined ? bytes : concatBytes([this.#tail, bytes]);
    this.#tail = undefined;
    this.#chunk = chunk;
    this.#runStart = -1;
    let offset = this.#continueBody(chunk);
    while (offset < chunk.length && !this.#isBroken) {
      this.#offset = offset;
      const end = this.#frameEnd(chunk, offset);
      if (end < 0) {
        // Noted first: whoever is forwarded to may ask whether a frame is incomplete.
        if (!this.#isBroken) this.#tail = chunk.slice(offset);
        break;
      }
      const type = chunk[offset] ?? 0;
      const isForwarded = this.#judge(type, offset, Math.min(end, chunk.length));
      if (!isForwarded) this.#flush(offset);
      else if (this.#runStart < 0) this.#runStart = offset;
      if (end > chunk.length) {
        this.#bodyLeft = end - chunk.length;
        this.#isBodyForwarded = isForwarded;
        offset = chunk.length;
      } else {
        offset = end;
        if (type !== Backend.DATA_ROW) this.#answerLocally(offset);
      }
    }
    this.#flush(offset);
    this.#chunk = EMPTY;
    // What was joined here is nobody else's.
    if (chunk !== bytes) releaseBytes(chunk);
  }

  /**
   * Says what is ours to say now, when nothing is owed before it. Called after entries were added. Inside a frame that is being
   * forwarded it waits for the frame's end.
   */
  answerLocally(): void {
    while (!this.isMidForward) {
      if (this.#plan.headKind === Expect.COPY_END) {
        this.#plan.pop();
        continue;
      }
      const local = this.#plan.takeLocal();
      if (local === undefined) return;
      this.sink?.forward(local);
    }
  }

  #answerLocally(offset: number): void {
    if (this.#plan.headKind < Expect.LOCAL) return;
    this.#flush(offset);
    this.answerLocally();
  }

  #continueBody(chunk: Uint8Array): number {
    if (this.#bodyLeft === 0) return 0;
    const size = Math.min(this.#bodyLeft, chunk.length);
    this.#bodyLeft -= size;
    if (this.#isBodyForwarded) this.#runStart = 0;
    if (this.#bodyLeft === 0) this.#answerLocally(size);
    return size;
  }

  /** Where the frame ends, possibly past the chunk; -1 when more bytes are needed to say, or to understand it. */
  #frameEnd(chunk: Uint8Array, offset: number): number {
    if (chunk.length - offset < HEADER_BYTES) return -1;
    const length = readInt32(chunk, offset + 1);
    if (length < 4) return this.#violation(`invalid message length ${length} from server`);
    const end = offset + 1 + length;
    const missing = end - chunk.length;
    if (missing <= 0) return end;
    switch (chunk[offset] ?? 0) {
      case Backend.ERROR_RESPONSE:
        return chunk.length - offset < ERROR_PREFIX_MAX ? -1 : end;
      case Backend.DATA_ROW:
        if (this.#plan.headHook?.row === undefined) return end;
        break;
      case Backend.READY_FOR_QUERY:
      case Backend.PARAMETER_STATUS:
      case Backend.COMMAND_COMPLETE:
        break;
      default:
        return end;
    }
    return length > WHOLE_REPLY_MAX
      ? this.#violation(`control message of ${length} bytes from server`)
      : -1;
  }

  #flush(end: number): void {
    if (this.#runStart < 0) return;
    const start = this.#runStart;
    this.#runStart = -1;
    if (end <= start) return;
    const chunk = this.#chunk;
    if (start === 0 && end === chunk.length) this.sink?.forward(chunk);
    // A short piece may be sent when the chunk has been released.
    else if (end - start < RELEASE_BYTES_MIN) this.sink?.forward(chunk.slice(start, end));
    else this.sink?.forward(chunk.subarray(start, end));
  }

  /** Moves the plan on; true when the client gets the frame. `end` is the frame's, or the chunk's if that comes first. */
  #judge(type: number, offset: number, end: number): boolean {
    const plan = this.#plan;
    const isShown = (plan.headFate & Fate.HIDE_SUCCESS) === 0;
    switch (type) {
      case Backend.DATA_ROW:
        plan.headHook?.row?.(this.#chunk.subarray(offset, end));
        return this.#inResult(type) && isShown;
      case Backend.COPY_DATA:
      case Backend.COPY_DONE:
      case Backend.COPY_OUT_RESPONSE:
      case Backend.FUNCTION_CALL_RESPONSE:
        return this.#inResult(type) && isShown;
      case Backend.COMMAND_COMPLETE:
        if (!this.#endResult(type)) return false;
        this.#observer.commandComplete(this.#chunk, offset, end);
        return isShown;
      case Backend.EMPTY_QUERY_RESPONSE:
      case Backend.PORTAL_SUSPENDED:
        return this.#endResult(type) && isShown;
      case Backend.READY_FOR_QUERY:
        return this.#ready(offset, end) && isShown;
      case Backend.PARSE_COMPLETE:
        return this.#complete(Expect.PARSE, type) && isShown;
      case Backend.BIND_COMPLETE:
        return this.#complete(Expect.BIND, type) && isShown;
      case Backend.CLOSE_COMPLETE:
        return this.#complete(Expect.CLOSE, type) && isShown;
      case Backend.PARAMETER_DESCRIPTION:
        return this.#mustBe(plan.headKind === Expect.DESCRIBE, type) && isShown;
      case Backend.ROW_DESCRIPTION:
        if (plan.headKind === Expect.DESCRIBE)
          return this.#complete(Expect.DESCRIBE, type) && isShown;
        return this.#mustBe(plan.headKind === Expect.QUERY, type) && isShown;
      case Backend.NO_DATA:
        return this.#complete(Expect.DESCRIBE, type) && isShown;
      case Backend.COPY_IN_RESPONSE:
        return this.#enterCopyIn() && isShown;
      case Backend.ERROR_RESPONSE:
        return this.#error(this.#chunk.subarray(offset, end), offset);
      case Backend.PARAMETER_STATUS:
        this.#observer.parameterStatus(this.#chunk.subarray(offset, end));
        return isShown;
      case Backend.NOTICE_RESPONSE:
        return isShown;
      case Backend.NOTIFICATION_RESPONSE:
        return true;
      default:
        this.#violation(`unexpected message ${String.fromCharCode(type)} from server`);
        return false;
    }
  }

  #inResult(type: number): boolean {
    const kind = this.#plan.headKind;
    return this.#mustBe(
      kind === Expect.EXECUTE || kind === Expect.QUERY || kind === Expect.FUNCTION_CALL,
      type,
    );
  }

  #endResult(type: number): boolean {
    if (this.#plan.headKind === Expect.EXECUTE) return this.#complete(Expect.EXECUTE, type);
    return this.#mustBe(this.#plan.headKind === Expect.QUERY, type);
  }

  #enterCopyIn(): boolean {
    const kind = this.#plan.headKind;
    const isExpected = kind === Expect.EXECUTE || kind === Expect.QUERY;
    if (!this.#mustBe(isExpected, Backend.COPY_IN_RESPONSE)) return false;
    this.#observer.copyIn(this.#plan.enterCopyIn());
    return true;
  }

  #complete(kind: number, type: number): boolean {
    if (!this.#mustBe(this.#plan.headKind === kind, type)) return false;
    const hook = this.#plan.headHook;
    this.#plan.pop();
    hook?.completed?.();
    return true;
  }

  #ready(offset: number, end: number): boolean {
    const kind = this.#plan.headKind;
    const isExpected =
      (kind === Expect.SYNC || kind === Expect.QUERY || kind === Expect.FUNCTION_CALL) &&
      end - offset === HEADER_BYTES + 1;
    if (!this.#mustBe(isExpected, Backend.READY_FOR_QUERY)) return false;
    this.#observer.readyForQuery(this.#chunk[offset + HEADER_BYTES] ?? 0);
    const hook = this.#plan.headHook;
    this.#plan.pop();
    hook?.completed?.();
    return true;
  }

  #error(prefix: Uint8Array, offset: number): boolean {
    const plan = this.#plan;
    // The observer or a hook may end the connection, and then the client is owed what came before.
    this.#flush(offset);
    if (plan.length === 0 || isFatal(prefix)) {
      this.#observer.fatalError(prefix);
      return false;
    }
    this.#observer.errorResponse(prefix);
    const isShown = (plan.headFate & Fate.HIDE_ERROR) === 0;
    const replacement = plan.headHook?.replacement;
    plan.fail(prefix);
    if (!isShown && replacement !== undefined) this.sink?.forward(replacement);
    return isShown;
  }

  #mustBe(isExpected: boolean, type: number): boolean {
    if (!isExpected) this.#violation(`unexpected message ${String.fromCharCode(type)} from server`);
    return isExpected;
  }

  #violation(reason: string): -1 {
    if (!this.#isBroken) {
      this.#flush(this.#offset);
      this.#isBroken = true;
      this.#observer.violation(reason);
    }
    return -1;
  }
}

/** FATAL and PANIC end the connection, whatever they answer. */
function isFatal(prefix: Uint8Array): boolean {
  const severity = readErrorFields(prefix).get("V");
  return severity === "FATAL" || severity === "PANIC";
}

const EMPTY = new Uint8Array(0);
