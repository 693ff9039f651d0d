// Gathers what goes to one server within one pass, so that it leaves in one write. Neighbouring parts of one chunk are joined, not copied.
import { copyRange } from "../wire/message-types.ts";

/** Up to this size pieces are copied together, for a write is one system call; larger ones go out as they are. */
const COPY_BYTES_MAX = 65_536;

export class OutputBatch {
  // Parallel arrays: a piece is bytes `#starts[i]` to `#ends[i]` of `#chunks[i]`.
  readonly #chunks: Uint8Array[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #bytes = 0;

  add(chunk: Uint8Array, start: number = 0, end: number = chunk.length): void {
    this.#bytes += end - start;
    const last = this.#chunks.length - 1;
    if (last >= 0 && this.#chunks[last] === chunk && this.#ends[last] === start) {
      this.#ends[last] = end;
      return;
    }
    this.#chunks.push(chunk);
    this.#starts.push(start);
    this.#ends.push(end);
  }

  flush(target: { send(bytes: Uint8Array): void }): void {
    const count = this.#chunks.length;
    if (count === 0) return;
    if (count > 1 && this.#bytes <= COPY_BYTES_MAX) target.send(this.#joined());
    else for (let i = 0; i < count; i++) target.send(this.#piece(i));
    this.#chunks.length = 0;
    this.#starts.length = 0;
    this.#ends.length = 0;
    this.#bytes = 0;
  }

  #joined(): Uint8Array {
    const whole = new Uint8Array(this.#bytes);
    let at = 0;
    for (let i = 0; i < this.#chunks.length; i++) {
      const start = this.#starts[i] ?? 0;
      const end = this.#ends[i] ?? 0;
      copyRange(whole, at, this.#chunks[i] ?? NOTHING, start, end);
      at += end - start;
    }
    return whole;
  }

  #piece(index: number): Uint8Array {
    const chunk = this.#chunks[index] ?? NOTHING;
    const start = this.#starts[index] ?? 0;
    const end = this.#ends[index] ?? 0;
    return start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end);
  }
}

const NOTHING = new Uint8Array(0);
