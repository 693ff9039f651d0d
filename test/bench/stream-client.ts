// Reads one large result and counts its bytes, over the wire or a WebSocket, as a process of its own. The plan comes on stdin.
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { ScramClientExchange } from "#auth/scram/client-exchange.ts";
import { Secret } from "#auth/secret.ts";
import { encodeSaslInitial, encodeSaslResponse } from "#pool/backend/login-messages.ts";
import { FrameSplitter, type FrameSink } from "#pool/wire/frame-splitter.ts";
import { encodeQuery } from "#pool/wire/frontend-messages.ts";
import { Backend, HEADER_BYTES, readInt32 } from "#pool/wire/message-types.ts";
import { errorText, startup } from "#test/support/raw-client.ts";

export interface StreamPlan {
  readonly door: "wire" | "websocket";
  readonly port: number;
  readonly user: string;
  /** For SCRAM, or at the WebSocket a JWT in the Authorization header. */
  readonly secret: string;
  readonly sql: string;
}

export type StreamMark =
  | {
      readonly mark: "result";
      readonly rowCount: number;
      readonly bytes: number;
      readonly tookMs: number;
    }
  | { readonly mark: "failed"; readonly reason: string };

/** PostgreSQL refuses to make a longer message. */
const FRAME_BYTES_MAX = 1_024 ** 3;
const MECHANISMS = ["SCRAM-SHA-256"];
const SASL = 10;
const SASL_CONTINUE = 11;
const SASL_FINAL = 12;

class StreamClient implements FrameSink {
  readonly #plan: StreamPlan;
  readonly #send: (bytes: Uint8Array) => void;
  readonly #scram: ScramClientExchange;
  readonly #splitter = new FrameSplitter(this, FRAME_BYTES_MAX);
  readonly #done = Promise.withResolvers<StreamMark>();
  readonly result: Promise<StreamMark> = this.#done.promise;
  #rowCount = 0;
  #bytes = 0;
  #askedMs: number | undefined;

  constructor(plan: StreamPlan, send: (bytes: Uint8Array) => void) {
    this.#plan = plan;
    this.#send = send;
    this.#scram = new ScramClientExchange({ password: new Secret(plan.secret), randomBytes });
  }

  start(): void {
    this.#send(startup({ user: this.#plan.user, database: "app" }));
  }

  received(bytes: Uint8Array): void {
    if (this.#askedMs !== undefined) this.#bytes += bytes.length;
    this.#splitter.push(bytes);
  }

  fail(reason: string): void {
    this.#done.resolve({ mark: "failed", reason });
  }

  frame(type: number, chunk: Uint8Array, start: number, end: number): void {
    if (type === Backend.DATA_ROW) this.#rowCount++;
    else if (type === Backend.AUTHENTICATION) this.#authenticate(chunk.subarray(start, end));
    else if (type === Backend.ERROR_RESPONSE) this.fail(errorText(chunk.subarray(start, end)));
    else if (type === Backend.READY_FOR_QUERY) this.#ready();
  }

  largeStart(): void {
    this.fail("a row is larger than the bench asked for");
  }

  largeBytes(): void {
    this.fail("a row is larger than the bench asked for");
  }

  violation(reason: string): void {
    this.fail(reason);
  }

  #authenticate(frame: Uint8Array): void {
    const code = readInt32(frame, HEADER_BYTES);
    const body = frame.subarray(HEADER_BYTES + 4);
    if (code === SASL) {
      const { mechanism, message } = this.#scram.start(MECHANISMS);
      this.#send(encodeSaslInitial(mechanism, message));
    } else if (code === SASL_CONTINUE) {
      this.#scram
        .continue(body)
        .then((message) => this.#send(encodeSaslResponse(message)))
        .catch((error: unknown) => this.fail(String(error)));
    } else if (code === SASL_FINAL) this.#scram.finish(body);
  }

  #ready(): void {
    const nowMs = performance.now();
    if (this.#askedMs === undefined) {
      this.#askedMs = nowMs;
      this.#send(encodeQuery(this.#plan.sql));
      return;
    }
    const tookMs = nowMs - this.#askedMs;
    this.#done.resolve({ mark: "result", rowCount: this.#rowCount, bytes: this.#bytes, tookMs });
  }
}

function overWire(plan: StreamPlan): Promise<StreamMark> {
  const socket = connect({ host: "127.0.0.1", port: plan.port });
  const client = new StreamClient(plan, (bytes) => socket.write(bytes));
  socket.on("connect", () => client.start());
  socket.on("data", (bytes: Buffer) => client.received(bytes));
  socket.on("error", (error) => client.fail(error.message));
  socket.on("close", () => client.fail("the server closed the connection"));
  return client.result;
}

function overWebSocket(plan: StreamPlan): Promise<StreamMark> {
  const socket = new WebSocket(`ws://127.0.0.1:${plan.port}/v2`, {
    headers: { Authorization: `Bearer ${plan.secret}` },
  });
  socket.binaryType = "arraybuffer";
  const client = new StreamClient(plan, (bytes) => socket.send(bytes));
  socket.addEventListener("open", () => client.start());
  socket.addEventListener("message", ({ data }) => {
    if (data instanceof ArrayBuffer) client.received(new Uint8Array(data));
  });
  socket.addEventListener("error", () => client.fail("the WebSocket failed"));
  socket.addEventListener("close", () => client.fail("the server closed the WebSocket"));
  return client.result;
}

if (import.meta.main) {
  const plan = (await Bun.stdin.json()) as StreamPlan;
  const mark = await (plan.door === "wire" ? overWire(plan) : overWebSocket(plan));
  process.stdout.write(`${JSON.stringify(mark)}\n`, () => process.exit(0));
}
