// Cuts a client's byte stream into frames, whatever the sizes of its chunks. Small frames come whole, large ones as a prefix and a stream. Pure.
import { HEADER_BYTES, WHOLE_FRAME_MAX, concatBytes, readInt32 } from "./message-types.ts";

export interface FrameSink {
  /** A whole frame, header included; a view into the chunk it came in, valid for as long as it is kept. */
  frame(type: number, bytes: Uint8Array): void;
  /** A frame larger than WHOLE_FRAME_MAX begins: its first WHOLE_FRAME_MAX bytes, and its size in all. */
  largeStart(type: number, prefix: Uint8Array, sizeBytes: number): void;
  /** The next bytes of the large frame. */
  largeBytes(bytes: Uint8Array, isLast: boolean): void;
  /** The stream can't be understood from here on; nothing follows. */
  violation(reason: string): void;
}

/** Pieces of one frame that are kept apart: a client that sends byte by byte must not cost an array for each of them. */
const PIECES_MAX = 64;

/**
 * While suspended it keeps the chunks it is given; whoever suspends it also stops reading the socket, so that it keeps at most
 * what was already on its way.
 *
 *   push ──► backlog (suspended) ──► pieces of one incomplete frame ──► frame()
 *                                 └► largeStart(), largeBytes()…
 */
export class FrameSplitter {
  readonly #sink: FrameSink;
  readonly #frameBytesMax: number;
  /** Chunks that arrived while suspended, oldest first. */
  #backlog: Uint8Array[] = [];
  /** Bytes of one incomplete frame: less than a header, or less than min(its size, WHOLE_FRAME_MAX). */
  #pieces: Uint8Array[] = [];
  #piecesBytes = 0;
  /** Bytes still to come of a large frame. */
  #largeLeft = 0;
  #isSuspended = false;
  #isBroken = false;
  #isRunning = false;

  /** `frameBytesMax`: a longer frame is a violation, found before anything is allocated for it. */
  constructor(sink: FrameSink, frameBytesMax: number) {
    this.#sink = sink;
    this.#frameBytesMax = frameBytesMax;
  }

  /** True when the stream ends inside a frame if it ends now. */
  get isMidFrame(): boolean {
    return this.#largeLeft > 0 || this.#piecesBytes > 0;
  }

  get isMidLargeFrame(): boolean {
    return this.#largeLeft > 0;
  }

  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  push(chunk: Uint8Array): void {
    if (this.#isBroken || chunk.length === 0) return;
    if (this.#isSuspended || this.#isRunning || this.#backlog.length > 0) {
      this.#backlog.push(chunk);
      return;
    }
    this.#run(chunk);
    // What was pushed from inside a delivery.
    this.#runBacklog();
  }

  /** Takes effect behind the frame being delivered now. */
  suspend(): void {
    this.#isSuspended = true;
  }

  resume(): void {
    this.#isSuspended = false;
    // A resume from inside a delivery: the running loop goes on by itself.
    if (!this.#isRunning) this.#runBacklog();
  }

  #runBacklog(): void {
    while (!this.#isSuspended && !this.#isBroken) {
      const chunk = this.#backlog.shift();
      if (chunk === undefined) return;
      this.#run(chunk);
    }
  }

  #run(chunk: Uint8Array): void {
    this.#isRunning = true;
    let rest = chunk;
    while (rest.length > 0 && !this.#isBroken) {
      if (this.#isSuspended) {
        this.#backlog.unshift(rest);
        break;
      }
      rest = this.#take(rest);
    }
    this.#isRunning = false;
  }

  /** Delivers at most one frame or one part of a large one; returns what is left of the chunk. */
  #take(chunk: Uint8Array): Uint8Array {
    if (this.#largeLeft > 0) {
      const part = chunk.length <= this.#largeLeft ? chunk : chunk.subarray(0, this.#largeLeft);
      this.#largeLeft -= part.length;
      this.#sink.largeBytes(part, this.#largeLeft === 0);
      return chunk.subarray(part.length);
    }
    if (this.#piecesBytes === 0 && chunk.length >= HEADER_BYTES) return this.#takeFresh(chunk);
    return this.#takePieces(chunk);
  }

  #takeFresh(chunk: Uint8Array): Uint8Array {
    const size = this.#frameSize(chunk);
    if (size === 0) return chunk;
    const wanted = Math.min(size, WHOLE_FRAME_MAX);
    if (chunk.length < wanted) {
      // A copy: a view would keep all of a large chunk for the sake of its last bytes.
      this.#pieces.push(chunk.slice());
      this.#piecesBytes = chunk.length;
      return chunk.subarray(chunk.length);
    }
    this.#deliver(chunk.subarray(0, wanted), size);
    return chunk.subarray(wanted);
  }

  #takePieces(chunk: Uint8Array): Uint8Array {
    let used = 0;
    if (this.#piecesBytes < HEADER_BYTES) {
      used = Math.min(HEADER_BYTES - this.#piecesBytes, chunk.length);
      this.#pieces.push(chunk.subarray(0, used));
      this.#piecesBytes += used;
      if (this.#piecesBytes < HEADER_BYTES) return chunk.subarray(used);
      this.#pieces = [concatBytes(this.#pieces)];
    }
    const header = this.#pieces[0] ?? chunk;
    const size = this.#frameSize(header);
    if (size === 0) return chunk;
    const wanted = Math.min(size, WHOLE_FRAME_MAX) - this.#piecesBytes;
    const piece = chunk.subarray(used, used + wanted);
    if (piece.length > 0) this.#pieces.push(piece);
    if (this.#pieces.length > PIECES_MAX) this.#pieces = [concatBytes(this.#pieces)];
    this.#piecesBytes += piece.length;
    if (piece.length === wanted) {
      const whole = concatBytes(this.#pieces);
      this.#pieces = [];
      this.#piecesBytes = 0;
      this.#deliver(whole, size);
    }
    return chunk.subarray(used + piece.length);
  }

  #deliver(bytes: Uint8Array, size: number): void {
    const type = bytes[0] ?? 0;
    if (size <= WHOLE_FRAME_MAX) {
      this.#sink.frame(type, bytes);
      return;
    }
    this.#largeLeft = size - bytes.length;
    this.#sink.largeStart(type, bytes, size);
  }

  /** The frame's size with its header, or 0 after a violation. */
  #frameSize(header: Uint8Array): number {
    const length = readInt32(header, 1);
    if (length >= 4 && length < this.#frameBytesMax) return length + 1;
    this.#isBroken = true;
    this.#sink.violation(
      length < 4
        ? `invalid message length ${length}`
        : `message of ${length} bytes exceeds max_packet_size`,
    );
    return 0;
  }
}
