// The answers one backend connection still owes, in order: the only place that knows what becomes of a reply.

/** What a message that was sent will be answered with ("Message Flow"). */
export const Expect = {
  /** Parse: ParseComplete. */
  PARSE: 1,
  /** Bind: BindComplete. */
  BIND: 2,
  /** Close: CloseComplete. */
  CLOSE: 3,
  /** Describe: [ParameterDescription,] RowDescription or NoData. */
  DESCRIBE: 4,
  /** Execute: rows, then CommandComplete, EmptyQueryResponse or PortalSuspended; or a COPY. */
  EXECUTE: 5,
  /** Sync: ReadyForQuery. */
  SYNC: 6,
  /** Query: any number of results, then ReadyForQuery. */
  QUERY: 7,
  /** FunctionCall: FunctionCallResponse, then ReadyForQuery. */
  FUNCTION_CALL: 8,
  /** No message was sent: we answer when its turn comes. */
  LOCAL: 9,
  /** CopyDone or CopyFail was sent ahead of CopyInResponse: no answer of its own, but it will end the copy. */
  COPY_END: 10,
  /** As LOCAL, in place of a Query: the answer ends with ReadyForQuery. */
  LOCAL_QUERY: 11,
} as const;

/** Answered with ReadyForQuery in the end, whatever comes before it; an error in one skips nothing ("Extended Query"). */
function isReadyKind(kind: number): boolean {
  return (
    kind === Expect.SYNC ||
    kind === Expect.QUERY ||
    kind === Expect.FUNCTION_CALL ||
    kind === Expect.LOCAL_QUERY
  );
}

/** What becomes of an answer; bits. */
export const Fate = {
  FORWARD: 0,
  /** The client does not see success; an error is its own. */
  HIDE_SUCCESS: 1,
  /** The client does not see the server's error; the hook's `replacement` goes out in its place, if it has one. */
  HIDE_ERROR: 2,
  HIDE_ALL: 3,
} as const;

/** Who wants to know how one message ended. Called while the answers are being read: it must not send or release. */
export interface ReplyHook {
  /** The success answer has come. */
  completed?(): void;
  /** It failed, or was skipped because a message before it failed. */
  failed?(error: Uint8Array | undefined): void;
  /** A DataRow of an Execute whose success is hidden. */
  row?(frame: Uint8Array): void;
  /** What the client reads in place of the server's error; on a LOCAL entry, the answer. */
  readonly replacement?: Uint8Array;
}

type Payload = ReplyHook | undefined;

const INITIAL_CAPACITY = 16;

/**
 * A ring of three parallel arrays, so that the usual entry allocates nothing:
 *
 *   #head ─► kind fate payload │ kind fate payload │ …  ◄─ #head + #length
 */
export class ReplyPlan {
  #kinds = new Uint8Array(INITIAL_CAPACITY);
  #fates = new Uint8Array(INITIAL_CAPACITY);
  #payloads: Payload[] = Array.from<Payload>({ length: INITIAL_CAPACITY });
  #head = 0;
  #length = 0;
  /** A message failed and no Sync has been sent since: the server drops all it is sent. The ring is empty then. */
  #isSkipping = false;
  #hasHeadFailed = false;

  /** The server drops what it is sent until the next Sync, for a message of this segment has failed. */
  get isSkipping(): boolean {
    return this.#isSkipping;
  }

  /** The request at the head has had its error: only its ReadyForQuery is still owed. */
  get hasHeadFailed(): boolean {
    return this.#hasHeadFailed;
  }

  /** Entries outstanding; a session stops reading its client when this grows too long. */
  get length(): number {
    return this.#length;
  }

  get headKind(): number {
    return this.#length === 0 ? 0 : (this.#kinds[this.#head] ?? 0);
  }

  get headFate(): number {
    return this.#length === 0 ? Fate.FORWARD : (this.#fates[this.#head] ?? 0);
  }

  get headHook(): ReplyHook | undefined {
    return this.#length === 0 ? undefined : this.#payloads[this.#head];
  }

  /** A message was sent. One that the server will drop is entered nowhere: its hook is told at once. */
  expect(kind: number, fate: number = Fate.FORWARD, hook?: ReplyHook): void {
    if (!this.#isSkipping) {
      this.#push(kind, fate, hook);
    } else if (kind === Expect.SYNC) {
      this.#isSkipping = false;
      this.#push(kind, fate, hook);
      this.#hasHeadFailed = true;
    } else {
      hook?.failed?.(undefined);
    }
  }

  /** Says `answer` to the client when everything sent before it has been answered; `failed` is called if that never comes. */
  answer(answer: Uint8Array, failed?: () => void): void {
    const hook = failed === undefined ? { replacement: answer } : { replacement: answer, failed };
    this.expect(Expect.LOCAL, Fate.FORWARD, hook);
  }

  /** As `answer`, to a Query that no server is to hear of; `answer` ends with ReadyForQuery. */
  answerQuery(answer: Uint8Array): void {
    this.expect(Expect.LOCAL_QUERY, Fate.FORWARD, { replacement: answer });
  }

  pop(): void {
    this.#hasHeadFailed = false;
    this.#payloads[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#kinds.length - 1);
    this.#length--;
  }

  /** The local answer at the head, taken off; undefined when the head is another kind. */
  takeLocal(): Uint8Array | undefined {
    const kind = this.headKind;
    if (kind !== Expect.LOCAL && kind !== Expect.LOCAL_QUERY) return undefined;
    const answer = this.headHook?.replacement;
    this.pop();
    return answer;
  }

  /**
   * The server answered the head with an error. A message of the extended protocol takes all behind it with it, up to the next Sync,
   * sent already or not ("Extended Query").
   */
  fail(error: Uint8Array): void {
    if (isReadyKind(this.headKind)) {
      this.#hasHeadFailed = true;
      this.headHook?.failed?.(error);
      return;
    }
    let cause: Uint8Array | undefined = error;
    // Whatever a hook enters now would be dropped too.
    while (this.#length > 0 && this.headKind !== Expect.SYNC) {
      const hook = this.headHook;
      this.pop();
      hook?.failed?.(cause);
      cause = undefined;
    }
    if (this.#length > 0) this.#hasHeadFailed = true;
    else this.#isSkipping = true;
  }

  /**
   * The head has entered copy-in mode. Until the copy ends the server ignores every Sync ("COPY Operations"), so those sent already, up
   * to a CopyDone or CopyFail, will not be answered. True when the copy's end has not been sent.
   */
  enterCopyIn(): boolean {
    const mask = this.#kinds.length - 1;
    const kept: [number, number, Payload][] = [];
    let isOpen = true;
    for (let i = 1; i < this.#length; i++) {
      const at = (this.#head + i) & mask;
      const kind = this.#kinds[at] ?? 0;
      if (isOpen && kind === Expect.COPY_END) isOpen = false;
      else if (!(isOpen && kind === Expect.SYNC)) {
        kept.push([kind, this.#fates[at] ?? 0, this.#payloads[at]]);
      }
    }
    while (this.#length > 1) this.#dropLast();
    for (const [kind, fate, payload] of kept) this.#push(kind, fate, payload);
    return isOpen;
  }

  /** A Sync was sent that is not answered yet. */
  get hasSync(): boolean {
    for (let i = 0; i < this.#length; i++) {
      if (this.#kinds[(this.#head + i) & (this.#kinds.length - 1)] === Expect.SYNC) return true;
    }
    return false;
  }

  /** Every ReadyForQuery still owed to the client: what it needs to be told when the connection is lost. */
  get readyOwed(): number {
    let owed = 0;
    for (let i = 0; i < this.#length; i++) {
      const at = (this.#head + i) & (this.#kinds.length - 1);
      const isShown = ((this.#fates[at] ?? 0) & Fate.HIDE_SUCCESS) === 0;
      if (isShown && isReadyKind(this.#kinds[at] ?? 0)) owed++;
    }
    return owed;
  }

  /** Gives up on all answers, as the connection is gone; hooks are told. */
  abandon(): void {
    while (this.#length > 0) {
      const hook = this.headHook;
      this.pop();
      hook?.failed?.(undefined);
    }
  }

  #dropLast(): void {
    this.#length--;
    this.#payloads[(this.#head + this.#length) & (this.#kinds.length - 1)] = undefined;
  }

  #push(kind: number, fate: number, payload: Payload): void {
    if (this.#length === this.#kinds.length) this.#grow();
    const at = (this.#head + this.#length) & (this.#kinds.length - 1);
    this.#kinds[at] = kind;
    this.#fates[at] = fate;
    this.#payloads[at] = payload;
    this.#length++;
  }

  #grow(): void {
    const size = this.#kinds.length;
    const kinds = new Uint8Array(size * 2);
    const fates = new Uint8Array(size * 2);
    const payloads: Payload[] = Array.from<Payload>({ length: size * 2 });
    for (let i = 0; i < this.#length; i++) {
      const at = (this.#head + i) & (size - 1);
      kinds[i] = this.#kinds[at] ?? 0;
      fates[i] = this.#fates[at] ?? 0;
      payloads[i] = this.#payloads[at];
    }
    this.#kinds = kinds;
    this.#fates = fates;
    this.#payloads = payloads;
    this.#head = 0;
  }
}
