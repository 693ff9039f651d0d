// A simulated cluster by itself, for tests of it: sessions that send bytes and show the answers, and time that a test moves.
import { encodeStartup } from "#pool/backend/login-messages.ts";
import type { ByteSocket } from "#pool/transport/socket.ts";
import { concatBytes, readInt32, writeInt32 } from "#pool/wire/message-types.ts";
import { SeededRandom } from "#test/support/seeded-random.ts";
import { client, describeReplies, splitFrames } from "#test/support/wire-frames.ts";
import { SimCluster } from "../../../simulation/server/sim-cluster.ts";
import type { SimServer } from "../../../simulation/server/sim-server.ts";
import type { SessionState } from "../../../simulation/server/statement-runner.ts";
import { sql } from "../../../simulation/server/statements.ts";
import { SimClock } from "../../../simulation/sim-clock.ts";
import { SimNetwork } from "../../../simulation/sim-network.ts";
import { Trace } from "../../../simulation/trace.ts";

/** More than any answer takes: packets that are sent again, slow statements, and no deadlock. */
const ANSWER_MS_MAX = 5_000;
const STEP_MS = 1;
const CANCEL_REQUEST = 80_877_102;
const CANCEL_PACKET_BYTES = 16;

/** A statement of a client, and what its session had when it ran. */
export interface Observed extends SessionState {
  readonly client: number;
}

export class ServerBench {
  readonly clock = new SimClock();
  readonly trace: Trace = new Trace(() => this.clock.now(), true);
  readonly observed: Observed[] = [];
  readonly cluster: SimCluster;
  readonly network: SimNetwork;

  constructor(seed = 1, serverCount = 3) {
    const { clock, trace } = this;
    const random = new SeededRandom(seed);
    const observe = (id: number, state: SessionState): void => {
      this.observed.push({ client: id, ...state });
    };
    this.cluster = new SimCluster({ clock, random, trace, serverCount, observe });
    this.network = new SimNetwork(clock, random, (host, socket) =>
      this.cluster.accept(host, socket),
    );
  }

  /** By its place, the first primary first. */
  server(index: number): SimServer {
    const server = this.cluster.servers[index];
    if (server === undefined) throw new Error(`there is no server ${index}`);
    return server;
  }

  /** Lets simulated time pass. */
  pass(ms: number): void {
    this.clock.runUntil(this.clock.now() + ms);
  }

  /** Lets simulated time pass until it is so. */
  until(what: string, isSo: () => boolean): void {
    const latest = this.clock.now() + ANSWER_MS_MAX;
    while (!isSo()) {
      if (this.clock.now() > latest) throw new Error(`in vain: ${what}`);
      this.pass(STEP_MS);
    }
  }

  /** A result that comes while simulated time passes; rejects as the promise does. */
  settle<T>(promise: Promise<T>): T {
    let outcome: { readonly value: T } | { readonly error: unknown } | undefined;
    promise.then(
      (value) => (outcome = { value }),
      (error: unknown) => (outcome = { error }),
    );
    this.until("a promise settles", () => outcome !== undefined);
    if (outcome === undefined || !("value" in outcome)) throw outcome?.error;
    return outcome.value;
  }

  /** A socket to the server, nothing said yet. */
  open(index = 0): BenchSession {
    const address = { host: this.server(index).name, port: 5432 };
    const socket = this.settle(this.network.connect(address, this.clock.now() + ANSWER_MS_MAX));
    return new BenchSession(this, socket);
  }

  /** A session that has logged in. */
  login(index = 0, parameters: Readonly<Record<string, string>> = {}): BenchSession {
    const session = this.open(index);
    const startup = encodeStartup({ user: "app", database: "sim", ...parameters });
    if (startup === undefined) throw new Error("the parameters can't be sent");
    session.send(startup);
    this.until("the server is ready", () => session.readyCount === 1);
    session.greeting = session.take();
    return session;
  }

  /** One committed write; its stamp. */
  write(session: BenchSession, tag: string, key: number): number {
    return stampOf(session.ask(client.query(sql.write(tag, key))));
  }

  /** What a read shows. */
  read(session: BenchSession, tag: string, key: number): number {
    return stampOf(session.ask(client.query(sql.read(tag, key))));
  }
}

export class BenchSession {
  readonly #bench: ServerBench;
  readonly #socket: ByteSocket;
  #answers: Uint8Array = new Uint8Array(0);
  #asked = 0;
  /** Of the login. */
  greeting: readonly string[] = [];
  /** Of BackendKeyData. */
  processId = 0;
  secret = 0;
  /** How the connection ended; undefined while it is open. */
  ending: "orderly" | "reset" | undefined;

  constructor(bench: ServerBench, socket: ByteSocket) {
    this.#bench = bench;
    this.#socket = socket;
    socket.setHandlers({
      data: (bytes) => this.#receive(bytes),
      drain: () => {},
      close: (error) => {
        this.ending = error === undefined ? "orderly" : "reset";
      },
    });
  }

  get readyCount(): number {
    return splitFrames(this.#answers).filter(({ type }) => type === "Z").length;
  }

  send(...messages: readonly Uint8Array[]): void {
    this.#socket.write(concatBytes(messages));
  }

  /** Sends messages and shows all answers, up to a ReadyForQuery for each Query and Sync of them. */
  ask(...messages: readonly Uint8Array[]): string[] {
    this.begin(...messages);
    return this.finish();
  }

  /** Sends messages that may have to wait. */
  begin(...messages: readonly Uint8Array[]): void {
    const types = splitFrames(concatBytes(messages)).map(({ type }) => type);
    this.#asked += types.filter((type) => type === "Q" || type === "S").length;
    this.send(...messages);
  }

  /** The answers to what was begun. */
  finish(): string[] {
    this.#bench.until("the answer", () => this.isAnswered);
    this.#asked = 0;
    return this.take();
  }

  get isAnswered(): boolean {
    return this.readyCount >= this.#asked;
  }

  /** What has come so far. */
  take(): string[] {
    return describeReplies(this.takeBytes());
  }

  takeBytes(): Uint8Array {
    const answers = this.#answers;
    this.#answers = new Uint8Array(0);
    return answers;
  }

  /** Sends a cancel request for what this session runs, with this secret. */
  cancel(secret: number = this.secret, index = 0): BenchSession {
    const packet = new Uint8Array(CANCEL_PACKET_BYTES);
    [CANCEL_PACKET_BYTES, CANCEL_REQUEST, this.processId, secret].forEach((value, place) => {
      writeInt32(packet, 4 * place, value);
    });
    const request = this.#bench.open(index);
    request.send(packet);
    return request;
  }

  /** Goes without a word. */
  reset(): void {
    this.#socket.destroy();
  }

  #receive(bytes: Uint8Array): void {
    this.#answers = concatBytes([this.#answers, bytes]);
    for (const { type, bytes: frame } of splitFrames(this.#answers)) {
      if (type !== "K") continue;
      this.processId = readInt32(frame, 5);
      this.secret = readInt32(frame, 9);
    }
  }
}

/** Of the one row `tag,stamp` of an answer. */
export function stampOf(replies: readonly string[]): number {
  const rows = replies.filter((line) => line.startsWith("D "));
  const stamp = /^D [^,]+,(\d+)$/.exec(rows[0] ?? "")?.[1];
  if (rows.length !== 1 || stamp === undefined) throw new Error(`no stamp: ${replies.join("; ")}`);
  return Number(stamp);
}
