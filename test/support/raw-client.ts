// A client that speaks the wire protocol byte by byte, for what no driver would send: it logs in by SCRAM or password and shows each answer.
import { connect, type Socket } from "node:net";
import { randomBytes } from "node:crypto";
import { ScramClientExchange } from "#auth/scram/client-exchange.ts";
import { Secret } from "#auth/secret.ts";
import {
  encodePassword,
  encodeSaslInitial,
  encodeSaslResponse,
} from "#pool/backend/login-messages.ts";
import { readCommandTag, readErrorFields } from "#pool/wire/backend-messages.ts";
import { encodeQuery, TERMINATE_FRAME } from "#pool/wire/frontend-messages.ts";
import { HEADER_BYTES, concatBytes, readInt32, writeInt32 } from "#pool/wire/message-types.ts";

/** No answer in a test takes longer than this. */
const ANSWER_TIMEOUT_MS = 20_000;

export interface Message {
  /** The type byte as a letter. */
  readonly type: string;
  /** The frame, header included. */
  readonly frame: Uint8Array;
}

export interface Answer {
  /** Of all results, one list per DataRow. */
  readonly rows: readonly (readonly (string | null)[])[];
  readonly tags: readonly string[];
  /** SQLSTATEs. */
  readonly errors: readonly string[];
  /** Letters of all messages, in order. */
  readonly types: string;
  /** Transaction status of the last ReadyForQuery: I, T or E. */
  readonly status: string | undefined;
}

export interface RawLogin {
  readonly port: number;
  readonly user?: string;
  readonly password: string;
  readonly database?: string;
  readonly parameters?: Readonly<Record<string, string>>;
}

export class RawClient {
  readonly #socket: Socket;
  #bytes: Uint8Array[] = [];
  #bytesCount = 0;
  #isEnded = false;
  #wake: (() => void) | undefined;
  /** Reported values, by name. */
  readonly parameters = new Map<string, string>();
  processId = 0;
  secretKey: Uint8Array = new Uint8Array(0);
  /** The code of each AuthenticationRequest, in order. */
  readonly authentications: number[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#bytes.push(new Uint8Array(bytes));
      this.#bytesCount += bytes.length;
      this.#wake?.();
    });
    // A reset is one way to be closed; the close event follows.
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#isEnded = true;
      this.#wake?.();
    });
  }

  /** Connected, nothing sent. */
  static async open(port: number): Promise<RawClient> {
    const socket = connect({ host: "127.0.0.1", port });
    const client = new RawClient(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return client;
  }

  /** Logged in and ready. Rejects with the SQLSTATE when it is refused. */
  static async login(login: RawLogin): Promise<RawClient> {
    const client = await RawClient.open(login.port);
    const refusal = await client.authenticate(login);
    if (refusal !== undefined) throw new Error(`the login was refused: ${errorText(refusal)}`);
    return client;
  }

  /** Startup message, password or SCRAM, up to ReadyForQuery; the ErrorResponse if one comes instead. */
  async authenticate(login: RawLogin): Promise<Uint8Array | undefined> {
    const { user = "app", database = "app", parameters = {} } = login;
    this.send(startup({ user, database, ...parameters }));
    const scram = new ScramClientExchange({ password: new Secret(login.password), randomBytes });
    for (;;) {
      const { type, frame } = await this.message();
      if (type === "E") return frame;
      if (type === "Z") return undefined;
      if (type === "R") await this.#answerAuthentication(frame, scram, login.password);
      if (type === "K") {
        this.processId = readInt32(frame, HEADER_BYTES);
        this.secretKey = frame.slice(HEADER_BYTES + 4);
      }
    }
  }

  async #answerAuthentication(
    frame: Uint8Array,
    scram: ScramClientExchange,
    password: string,
  ): Promise<void> {
    const code = readInt32(frame, HEADER_BYTES);
    const body = frame.subarray(HEADER_BYTES + 4);
    this.authentications.push(code);
    if (code === 3) this.send(encodePassword(new TextEncoder().encode(password)));
    if (code === 10) {
      const names = new TextDecoder()
        .decode(body)
        .split("\0")
        .filter((name) => name !== "");
      const { mechanism, message } = scram.start(names);
      this.send(encodeSaslInitial(mechanism, message));
    }
    if (code === 11) this.send(encodeSaslResponse(await scram.continue(body)));
    if (code === 12) scram.finish(body);
  }

  /** True once the connection is closed, whoever closed it. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** False when the bytes wait in this process. */
  send(...frames: readonly Uint8Array[]): boolean {
    return this.#socket.write(concatBytes(frames));
  }

  /** As `send`, and waits until the kernel has taken all. */
  async sent(...frames: readonly Uint8Array[]): Promise<void> {
    const bytes = concatBytes(frames);
    await new Promise<void>((resolve) => {
      this.#socket.write(bytes, () => resolve());
    });
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes without Terminate, as a crash would. */
  destroy(): void {
    this.#socket.destroy();
  }

  terminate(): void {
    this.#socket.end(TERMINATE_FRAME);
  }

  /** The next bytes, framed or not: for answers to encryption requests. */
  async bytes(count: number): Promise<Uint8Array> {
    await this.#have(count);
    return this.#take(count);
  }

  async message(): Promise<Message> {
    await this.#have(HEADER_BYTES);
    const size = readInt32(this.#peek(HEADER_BYTES), 1) + 1;
    await this.#have(size);
    const frame = this.#take(size);
    const type = String.fromCharCode(frame[0] ?? 0);
    if (type === "S") {
      const [name = "", value = ""] = strings(frame);
      this.parameters.set(name, value);
    }
    return { type, frame };
  }

  /** Everything up to a ReadyForQuery, or the number of them. */
  async untilReady(count = 1): Promise<Answer> {
    const messages: Message[] = [];
    for (let left = count; left > 0;) {
      const message = await this.message();
      messages.push(message);
      if (message.type === "Z") left--;
    }
    return answerOf(messages);
  }

  /** Everything up to the first message with this letter, which is included. */
  async until(type: string): Promise<Answer> {
    const messages: Message[] = [];
    do messages.push(await this.message());
    while (messages.at(-1)?.type !== type);
    return answerOf(messages);
  }

  query(text: string): Promise<Answer> {
    this.send(encodeQuery(text));
    return this.untilReady();
  }

  /** Resolves once the connection is closed, whoever closed it. */
  ended(): Promise<void> {
    return this.#wait(() => this.#isEnded);
  }

  /** Everything that comes before the connection closes. */
  async rest(): Promise<Answer> {
    await this.ended();
    const messages: Message[] = [];
    while (this.#bytesCount > 0) messages.push(await this.message());
    return answerOf(messages);
  }

  async #have(count: number): Promise<void> {
    await this.#wait(() => this.#bytesCount >= count || this.#isEnded);
    if (this.#bytesCount < count) throw new Error("the connection closed inside an answer");
  }

  async #wait(condition: () => boolean): Promise<void> {
    const deadline = performance.now() + ANSWER_TIMEOUT_MS;
    while (!condition()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw new Error("no answer in time");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
  }

  #peek(count: number): Uint8Array {
    const first = this.#bytes[0];
    if (first !== undefined && first.length >= count) return first;
    this.#bytes = [concatBytes(this.#bytes)];
    return this.#bytes[0] ?? new Uint8Array(0);
  }

  #take(count: number): Uint8Array {
    const all = this.#peek(count);
    this.#bytesCount -= count;
    if (all.length === count) this.#bytes.shift();
    else this.#bytes[0] = all.subarray(count);
    return all.slice(0, count);
  }
}

function answerOf(messages: readonly Message[]): Answer {
  const rows: (string | null)[][] = [];
  const tags: string[] = [];
  const errors: string[] = [];
  let status: string | undefined;
  for (const { type, frame } of messages) {
    if (type === "D") rows.push(cells(frame));
    if (type === "C") tags.push(readCommandTag(frame));
    if (type === "E") errors.push(readErrorFields(frame).get("C") ?? "");
    if (type === "Z") status = String.fromCharCode(frame[HEADER_BYTES] ?? 0);
  }
  return { rows, tags, errors, status, types: messages.map(({ type }) => type).join("") };
}

function cells(frame: Uint8Array): (string | null)[] {
  const values: (string | null)[] = [];
  let offset = HEADER_BYTES + 2;
  while (offset < frame.length) {
    const size = readInt32(frame, offset);
    offset += 4;
    values.push(size < 0 ? null : new TextDecoder().decode(frame.subarray(offset, offset + size)));
    offset += Math.max(0, size);
  }
  return values;
}

function strings(frame: Uint8Array): string[] {
  return new TextDecoder().decode(frame.subarray(HEADER_BYTES)).split("\0");
}

/** SQLSTATE and message of an ErrorResponse. */
export function errorText(frame: Uint8Array): string {
  const fields = readErrorFields(frame);
  return `${fields.get("C")} ${fields.get("M")}`;
}

/** A frame of any type with a body made of texts (with a NUL behind each), numbers of one byte, and bytes. */
export function frontendFrame(
  type: string,
  ...parts: readonly (string | number | Uint8Array)[]
): Uint8Array {
  const body = concatBytes(
    parts.map((part) => {
      if (typeof part === "number") return new Uint8Array([part]);
      return typeof part === "string" ? new TextEncoder().encode(`${part}\0`) : part;
    }),
  );
  const head = new Uint8Array(HEADER_BYTES);
  head[0] = type.charCodeAt(0);
  writeInt32(head, 1, body.length + 4);
  return concatBytes([head, body]);
}

export function int32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeInt32(bytes, 0, value);
  return bytes;
}

/** A StartupMessage; `version` 3.0 unless another is given. */
export function startup(
  parameters: Readonly<Record<string, string>>,
  version = 3 << 16,
): Uint8Array {
  const texts = Object.entries(parameters).map(([name, value]) => `${name}\0${value}\0`);
  const body = new TextEncoder().encode(`${texts.join("")}\0`);
  return concatBytes([int32(body.length + 8), int32(version), body]);
}

/** The 8 bytes of an SSLRequest. */
export const sslRequest: Uint8Array = concatBytes([int32(8), int32(80_877_103)]);

export const parse = (name: string, text: string): Uint8Array =>
  frontendFrame("P", name, text, 0, 0);

/** Text parameters, text results, the unnamed portal. */
export function bind(statement: string, ...parameters: readonly string[]): Uint8Array {
  const values = parameters.map((value) => {
    const bytes = new TextEncoder().encode(value);
    return concatBytes([int32(bytes.length), bytes]);
  });
  return frontendFrame("B", "", statement, 0, 0, 0, parameters.length, concatBytes(values), 0, 0);
}

/** `rowsMax` 0: all rows. */
export const execute = (rowsMax = 0): Uint8Array => frontendFrame("E", "", int32(rowsMax));
export const sync: Uint8Array = frontendFrame("S");

/** A CancelRequest, on a connection of its own; resolves when the server has closed it. */
export async function sendCancel(
  port: number,
  processId: number,
  secretKey: Uint8Array,
): Promise<void> {
  const client = await RawClient.open(port);
  const size = int32(12 + secretKey.length);
  client.send(size, int32(80_877_102), int32(processId), secretKey);
  await client.rest();
}
