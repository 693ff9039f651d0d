// Bytes that a socket could not send yet, oldest first, in copies of its own.
import { releaseBytes } from "./release-bytes.ts";

export class SendQueue {
  readonly #pieces: Uint8Array[] = [];
  /** Of the first piece. */
  #sentBytes = 0;
  #bytes = 0;

  /** How many wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Copies `bytes` from `start` on: whoever wrote them may release them, or write to them. */
  add(bytes: Uint8Array, start: number): void {
    this.#pieces.push(bytes.slice(start));
    this.#bytes += bytes.length - start;
  }

  /** Sends until all is sent, which is answered with true, or the socket takes no more. */
  flush(target: { write(bytes: Uint8Array): number }): boolean {
    for (;;) {
      const piece = this.#pieces[0];
      if (piece === undefined) return true;
      const from = this.#sentBytes;
      // Negative once the connection is gone.
      const sent = Math.max(0, target.write(from === 0 ? piece : piece.subarray(from)));
      this.#bytes -= sent;
      if (from + sent < piece.length) {
        this.#sentBytes = from + sent;
        return false;
      }
      this.#pieces.shift();
      this.#sentBytes = 0;
      releaseBytes(piece);
    }
  }
}
