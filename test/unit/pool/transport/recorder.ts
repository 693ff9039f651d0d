// Records what a socket tells its owner, and waits for it.
import type { ByteSocket, SocketHandlers } from "#pool/transport/socket.ts";

/** No wait of a test is longer; only a failing test reaches it. */
const WAIT_MAX_MS = 5000;

export class Recorder implements SocketHandlers {
  /** Bytes received in all. */
  size = 0;
  /** The same as text; only as long as the test sends text. */
  text = "";
  drains = 0;
  /** Messages of the errors that `close` told, "orderly" for none. */
  readonly closes: string[] = [];
  #wakers: (() => void)[] = [];

  static on(socket: ByteSocket): Recorder {
    const recorder = new Recorder();
    socket.setHandlers(recorder);
    return recorder;
  }

  data(bytes: Uint8Array): void {
    this.size += bytes.length;
    if (bytes.length < 1000) this.text += Buffer.from(bytes).toString();
    this.#wake();
  }

  drain(): void {
    this.drains += 1;
    this.#wake();
  }

  close(error: Error | undefined): void {
    this.closes.push(error?.message ?? "orderly");
    this.#wake();
  }

  /** Resolves once `condition` holds; it is looked at after each event. */
  async until(condition: () => boolean): Promise<void> {
    const deadline = performance.now() + WAIT_MAX_MS;
    while (!condition()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakers.push(resolve);
      const timer = setTimeout(resolve, deadline - performance.now());
      await promise;
      clearTimeout(timer);
      if (performance.now() > deadline) {
        throw new Error(`waited in vain: ${this.size} bytes, closes: ${this.closes.join()}`);
      }
    }
  }

  get closed(): Promise<void> {
    return this.until(() => this.closes.length > 0);
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }
}

/** What a promise was rejected with; undefined when it was not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return undefined;
}
