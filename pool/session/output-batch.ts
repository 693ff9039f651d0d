// Gathers what goes to one server within one pass, so that it leaves in one write. Neighbouring views of one chunk are joined, not copied.
import { concatBytes } from "../wire/message-types.ts";

/** Up to this size pieces are copied together, for a write is one system call; larger ones go out as they are. */
const COPY_BYTES_MAX = 65_536;

export class OutputBatch {
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;

  add(bytes: Uint8Array): void {
    const last = this.#pieces.at(-1);
    this.#bytes += bytes.length;
    if (
      last !== undefined &&
      last.buffer === bytes.buffer &&
      last.byteOffset + last.byteLength === bytes.byteOffset
    ) {
      this.#pieces[this.#pieces.length - 1] = new Uint8Array(
        last.buffer,
        last.byteOffset,
        last.byteLength + bytes.byteLength,
      );
      return;
    }
    this.#pieces.push(bytes);
  }

  flush(target: { send(bytes: Uint8Array): void }): void {
    const pieces = this.#pieces;
    const [first] = pieces;
    if (first === undefined) return;
    if (pieces.length === 1) target.send(first);
    else if (this.#bytes <= COPY_BYTES_MAX) target.send(concatBytes(pieces));
    else for (const piece of pieces) target.send(piece);
    pieces.length = 0;
    this.#bytes = 0;
  }
}
