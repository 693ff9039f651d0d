// A reply reader with a plan of its own, whose client and connection only take notes.
import { ReplyPlan } from "#pool/exchange/reply-plan.ts";
import { ReplyReader } from "#pool/exchange/reply-reader.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { describeReplies } from "#test/support/wire-frames.ts";

export class ReaderBench {
  readonly plan = new ReplyPlan();
  readonly events: string[] = [];
  readonly reader: ReplyReader;
  #forwarded: Uint8Array[] = [];
  /** Called inside each forward. */
  onForward: (() => void) | undefined;

  constructor() {
    this.reader = new ReplyReader(this.plan, {
      readyForQuery: (status) => this.events.push(`ready ${String.fromCharCode(status)}`),
      parameterStatus: () => this.events.push("parameter"),
      commandComplete: () => this.events.push("complete"),
      copyIn: (isOpen) => this.events.push(`copy in ${isOpen ? "open" : "ended"}`),
      fatalError: (prefix) => this.#fatal(prefix),
      errorResponse: () => this.events.push("error"),
      violation: (reason) => this.events.push(`violation: ${reason}`),
    });
    this.reader.sink = {
      forward: (bytes) => {
        this.#forwarded.push(bytes.slice());
        this.onForward?.();
      },
    };
  }

  /** One chunk; what the client was given of it. */
  receive(...parts: readonly Uint8Array[]): string[] {
    this.#forwarded = [];
    this.reader.receive(concatBytes(parts));
    return describeReplies(concatBytes(this.#forwarded));
  }

  /** Of the last chunk. */
  get forwarded(): Uint8Array {
    return concatBytes(this.#forwarded);
  }

  get forwardCalls(): number {
    return this.#forwarded.length;
  }

  #fatal(prefix: Uint8Array): void {
    this.events.push(`fatal ${describeReplies(prefix).join()}`);
    this.reader.stop();
  }
}
