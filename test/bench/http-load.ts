// Loads an HTTP server over kept-alive connections, as a process of its own. Speaks JSON lines with the bench: plan in, marks and result out.
import type { Socket } from "bun";

export interface HttpLoadPlan {
  readonly port: number;
  readonly token: string;
  readonly connectionCount: number;
  readonly seconds: number;
  readonly warmUpMs: number;
  /** Requests per second; absent for as many as possible. */
  readonly rate?: number;
  /** Bodies, taken in turn. */
  readonly bodies: readonly string[];
  /** Stands in every right answer. */
  readonly marker: string;
}

export type HttpLoadMark =
  | { readonly mark: "begin" | "end" }
  | {
      readonly mark: "result";
      readonly count: number;
      readonly errorCount: number;
      readonly firstError?: string;
      /** Milliseconds; a sample of at most LATENCIES_MAX. */
      readonly latencies: readonly number[];
    };

/** Enough for a p99 from a thousand values behind it. */
const LATENCIES_MAX = 100_000;
/** A request that waits for a free connection; more mean that the server is far behind the rate. */
const QUEUE_MAX = 100_000;
const TICK_MS = 1;
const CR_LF_CR_LF = Buffer.from("\r\n\r\n");

interface Connection {
  readonly socket: Socket;
  /** When the request under way was due; undefined while there is none. */
  dueMs: number | undefined;
  answer: Buffer | undefined;
}

class HttpLoad {
  readonly #plan: HttpLoadPlan;
  readonly #requests: readonly Buffer[];
  readonly #marker: Buffer;
  readonly #connections = new Map<Socket, Connection>();
  readonly #free: Connection[] = [];
  /** When each waiting request was due, oldest first; the first `#queueHead` are gone. */
  #queue: number[] = [];
  #queueHead = 0;
  #next = 0;
  #isMeasured = false;
  #isStopped = false;
  #count = 0;
  #errorCount = 0;
  #firstError: string | undefined;
  readonly #latencies: number[] = [];

  constructor(plan: HttpLoadPlan) {
    this.#plan = plan;
    this.#marker = Buffer.from(plan.marker);
    this.#requests = plan.bodies.map((body) =>
      Buffer.from(
        `POST /sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${plan.token}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      ),
    );
  }

  async run(say: (mark: HttpLoadMark) => void): Promise<void> {
    const { connectionCount, rate, seconds, warmUpMs } = this.#plan;
    for (let index = 0; index < connectionCount; index++) await this.#connect();
    const ticks = rate === undefined ? undefined : this.#startTicks(rate);
    if (rate === undefined)
      for (const connection of this.#free.splice(0)) this.#send(connection, performance.now());
    await Bun.sleep(warmUpMs);
    this.#isMeasured = true;
    say({ mark: "begin" });
    await Bun.sleep(seconds * 1_000);
    this.#isMeasured = false;
    say({ mark: "end" });
    this.#isStopped = true;
    clearInterval(ticks);
    const error = this.#firstError;
    say({
      mark: "result",
      count: this.#count,
      errorCount: this.#errorCount,
      ...(error === undefined ? {} : { firstError: error }),
      latencies: this.#latencies,
    });
  }

  async #connect(): Promise<void> {
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: this.#plan.port,
      socket: {
        data: (from, bytes) => this.#data(from, bytes),
        close: () => this.#fail("the server closed a connection"),
        error: (_from, error) => this.#fail(error.message),
      },
    });
    const connection: Connection = { socket, dueMs: undefined, answer: undefined };
    this.#connections.set(socket, connection);
    this.#free.push(connection);
  }

  /** What is due within one tick goes out together, and counts from then. */
  #startTicks(rate: number): Timer {
    const beganMs = performance.now();
    let sentCount = 0;
    return setInterval(() => {
      const nowMs = performance.now();
      const dueCount = Math.floor(((nowMs - beganMs) * rate) / 1_000);
      for (; sentCount < dueCount; sentCount++) {
        const connection = this.#free.pop();
        if (connection !== undefined) this.#send(connection, nowMs);
        else if (this.#queue.length - this.#queueHead < QUEUE_MAX) this.#queue.push(nowMs);
        else this.#fail("the server is too far behind the rate");
      }
    }, TICK_MS);
  }

  #send(connection: Connection, dueMs: number): void {
    const request = this.#requests[this.#next++ % this.#requests.length];
    if (request === undefined) return;
    connection.dueMs = dueMs;
    // A request of a few hundred bytes on an idle connection always fits.
    if (connection.socket.write(request) !== request.length) this.#fail("a request was cut");
  }

  #data(socket: Socket, bytes: Buffer): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    const answer =
      connection.answer === undefined ? bytes : Buffer.concat([connection.answer, bytes]);
    connection.answer = undefined;
    const headEnd = answer.indexOf(CR_LF_CR_LF);
    const head = headEnd < 0 ? "" : answer.toString("latin1", 0, headEnd);
    const size = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (headEnd >= 0 && size === undefined) return this.#fail("an answer has no Content-Length");
    if (headEnd < 0 || answer.length < headEnd + CR_LF_CR_LF.length + Number(size)) {
      connection.answer = answer;
      return;
    }
    this.#answered(connection, head, answer);
  }

  #answered(connection: Connection, head: string, answer: Buffer): void {
    const nowMs = performance.now();
    if (!head.startsWith("HTTP/1.1 200")) this.#fail(head.split("\r\n", 1)[0] ?? "no status");
    else if (answer.indexOf(this.#marker) < 0) this.#fail("an answer is not the expected one");
    if (this.#isMeasured) {
      this.#count++;
      const tookMs = nowMs - (connection.dueMs ?? nowMs);
      // Each later value takes the place of a random one, so that all stay equally likely (Vitter's algorithm R).
      const place =
        this.#count <= LATENCIES_MAX ? this.#count - 1 : Math.floor(Math.random() * this.#count);
      if (place < LATENCIES_MAX) this.#latencies[place] = tookMs;
    }
    connection.dueMs = undefined;
    if (this.#isStopped) return;
    if (this.#plan.rate === undefined) this.#send(connection, nowMs);
    else this.#sendWaiting(connection);
  }

  #sendWaiting(connection: Connection): void {
    const dueMs = this.#queue[this.#queueHead];
    if (dueMs === undefined) {
      this.#free.push(connection);
      return;
    }
    this.#queueHead++;
    if (this.#queueHead === this.#queue.length) {
      this.#queue = [];
      this.#queueHead = 0;
    }
    this.#send(connection, dueMs);
  }

  #fail(text: string): void {
    if (this.#isStopped) return;
    this.#errorCount++;
    this.#firstError ??= text;
  }
}

if (import.meta.main) {
  const plan = (await Bun.stdin.json()) as HttpLoadPlan;
  const output = Bun.stdout.writer();
  await new HttpLoad(plan).run((mark) => {
    void output.write(`${JSON.stringify(mark)}\n`);
    void output.flush();
  });
  // The result is a long line: an exit before it has left would cut it off.
  await output.end();
  process.exit(0);
}
