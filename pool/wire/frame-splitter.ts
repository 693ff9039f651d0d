// Cuts a client's byte stream into frames, whatever the sizes of its chunks. Small frames come whole, large ones as a prefix and a stream. Pure.
import { HEADER_BYTES, WHOLE_FRAME_MAX, concatBytes, readInt32 } from "./message-types.ts";

export interface FrameSink {
  /** A whole frame, header included, lies in `chunk` from `start` to `end`; valid for as long as the chunk is kept. */
  frame(type: number, chunk: Uint8Array, start: number, end: number): void;
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
  /** Chunks that arrived while suspended, oldest first; undefined when there are none, as most clients are idle. */
  #backlog: Uint8Array[] | undefined;
  /** Bytes of one incomplete frame: less than a header, or less than min(its size, WHOLE_FRAME_MAX). */
  #pieces: Uint8Array[] | undefined;
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
    if (this.#isSuspended || this.#isRunning || this.#backlog !== undefined) {
      this.#backlog ??= [];
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
      const chunk = this.#backlog?.shift();
      if (chunk === undefined) {
        this.#backlog = undefined;
        return;
      }
      this.#run(chunk);
    }
  }

  #run(chunk: Uint8Array): void {
    this.#isRunning = true;
    let offset = 0;
    while (offset < chunk.length && !this.#isBroken) {
      if (this.#isSuspended) {
        this.#backlog ??= [];
        this.#backlog.unshift(offset === 0 ? chunk : chunk.subarray(offset));
        break;
      }
      offset = this.#take(chunk, offset);
    }
    this.#isRunning = false;
  }

  /** Delivers at most one frame or one part of a large one; returns where the rest of the chunk begins. */
  #take(chunk: Uint8Array, offset: number): number {
    if (this.#largeLeft > 0) {
      const end = Math.min(chunk.length, offset + this.#largeLeft);
      this.#largeLeft -= end - offset;
      const part = offset === 0 && end === chunk.length ? chunk : chunk.subarray(offset, end);
      this.#sink.largeBytes(part, this.#largeLeft === 0);
      return end;
    }
    if (this.#piecesBytes === 0 && chunk.length - offset >= HEADER_BYTES) {
      return this.#takeFresh(chunk, offset);
    }
    return this.#takePieces(chunk, offset);
  }

  #takeFresh(chunk: Uint8Array, offset: number): number {
    const size = this.#frameSize(chunk, offset);
    if (size === 0) return offset;
    const end = offset + Math.min(size, WHOLE_FRAME_MAX);
    if (chunk.length < end) {
      // A copy: a view would keep all of a large chunk for the sake of its last bytes.
      this.#pieces = [chunk.slice(offset)];
      this.#piecesBytes = chunk.length - offset;
      return chunk.length;
    }
    this.#deliver(chunk, offset, end, size);
    return end;
  }

  #takePieces(chunk: Uint8Array, offset: number): number {
    let pieces = this.#pieces ?? [];
    let from = offset;
    if (this.#piecesBytes < HEADER_BYTES) {
      from = Math.min(offset + HEADER_BYTES - this.#piecesBytes, chunk.length);
      pieces.push(chunk.slice(offset, from));
      this.#pieces = pieces;
      this.#piecesBytes += from - offset;
      if (this.#piecesBytes < HEADER_BYTES) return from;
      pieces = [concatBytes(pieces)];
    }
    const size = this.#frameSize(pieces[0] ?? chunk, 0);
    if (size === 0) return offset;
    const wanted = Math.min(size, WHOLE_FRAME_MAX) - this.#piecesBytes;
    const end = Math.min(from + wanted, chunk.length);
    if (end > from) pieces.push(chunk.slice(from, end));
    if (end - from === wanted) {
      const whole = concatBytes(pieces);
      this.#pieces = undefined;
      this.#piecesBytes = 0;
      this.#deliver(whole, 0, whole.length, size);
      return end;
    }
    this.#pieces = pieces.length > PIECES_MAX ? [concatBytes(pieces)] : pieces;
    this.#piecesBytes += end - from;
    return end;
  }

  #deliver(chunk: Uint8Array, start: number, end: number, size: number): void {
    const type = chunk[start] ?? 0;
    if (size <= WHOLE_FRAME_MAX) {
      this.#sink.frame(type, chunk, start, end);
      return;
    }
    this.#largeLeft = size - (end - start);
    this.#sink.largeStart(type, chunk.subarray(start, end), size);
  }

  /** The frame's size with its header, or 0 after a violation. */
  #frameSize(chunk: Uint8Array, offset: number): number {
    const length = readInt32(chunk, offset + 1);
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
