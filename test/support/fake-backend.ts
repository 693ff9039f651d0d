// A PostgreSQL server on an in-memory socket: the model answers, and the test may hold its answers, say something else or break the connection.
import { concatBytes } from "#pool/wire/message-types.ts";
import { FakeSocket, type SocketPairOptions } from "./fake-socket.ts";
import { ModelServer } from "./model-server.ts";

export class FakeBackend {
  readonly model: ModelServer;
  /** The gateway's end. */
  readonly socket: FakeSocket;
  readonly #serverSocket: FakeSocket;
  #held: Uint8Array[] | undefined;
  /** The gateway has closed. */
  hasClosed = false;

  constructor(options: SocketPairOptions = {}) {
    const [gatewayEnd, serverEnd] = FakeSocket.pair(options);
    this.socket = gatewayEnd;
    this.#serverSocket = serverEnd;
    this.model = new ModelServer((bytes) => this.#answer(bytes));
    serverEnd.setHandlers({
      data: (bytes) => this.model.receive(bytes),
      drain: () => {},
      close: () => {
        this.hasClosed = true;
      },
    });
  }

  get received(): readonly string[] {
    return this.model.received;
  }

  /** Answers are kept until `release`. */
  hold(): void {
    this.#held ??= [];
  }

  /** The answers held so far are sent; with `cut`, only that many bytes of them, and the rest stays held. */
  release(cut?: number): void {
    const bytes = concatBytes(this.#held ?? []);
    this.#held = undefined;
    if (cut === undefined) {
      this.send(bytes);
      return;
    }
    this.send(bytes.subarray(0, cut));
    this.#held = [bytes.subarray(cut)];
  }

  /** What is held is never said: the test has answered in its place. */
  discardHeld(): void {
    this.#held = undefined;
  }

  /** Says something that the model does not. */
  send(...parts: readonly Uint8Array[]): void {
    this.#serverSocket.write(concatBytes(parts));
  }

  /** The server reads no further. */
  stopReading(): void {
    this.#serverSocket.pause();
  }

  resumeReading(): void {
    this.#serverSocket.resume();
  }

  /** Closes in order; what was sent before arrives first. */
  end(): void {
    this.#serverSocket.end();
  }

  /** The network between breaks. */
  break(): void {
    this.#serverSocket.break(new Error("connection reset"));
  }

  #answer(bytes: Uint8Array): void {
    if (this.#held === undefined) this.send(bytes);
    else this.#held.push(bytes);
  }
}

/** Lets everything run that is due now: sockets in memory deliver in microtasks. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
