// A PostgreSQL server as a script over a fake socket: reads what the client sends, answers as the test says, lies if told to.
import { ScramServerExchange } from "#auth/scram/server-exchange.ts";
import { deriveScramVerifier } from "#auth/scram/verifier.ts";
import { Secret } from "#auth/secret.ts";
import type { Server, SslMode } from "#pool/routing/server.ts";
import { encodeAuthentication, encodeFrame } from "#pool/wire/backend-messages.ts";
import { concatBytes, readInt32, writeInt32 } from "#pool/wire/message-types.ts";
import type { FakeSocket } from "#test/support/fake-socket.ts";

export const SSL_REQUEST = "0000000804d2162f";
const decoder = new TextDecoder();
const encoder = new TextEncoder();

export function fakeServer(mode: SslMode = "disable", host = "db.test"): Server {
  return {
    name: "primary",
    address: { host, port: 5432 },
    weight: 1,
    tls: { mode, ca: undefined },
    role: "unknown",
    epoch: 0,
    leased: 0,
  };
}

export function int32(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(4 * values.length);
  values.forEach((value, index) => writeInt32(bytes, index * 4, value));
  return bytes;
}

export const text = (value: string): Uint8Array => encoder.encode(value);
export const frame = (type: string, ...parts: readonly Uint8Array[]): Uint8Array =>
  encodeFrame(type.charCodeAt(0), concatBytes(parts));
export const AUTHENTICATION_OK = encodeAuthentication(0);
export const READY = frame("Z", text("I"));
export const KEY = frame("K", int32(4711, 0x01020304));
export const parameterStatus = (name: string, value: string): Uint8Array =>
  frame("S", text(`${name}\0${value}\0`));
export const errorFrame = (sqlState: string, message: string): Uint8Array =>
  frame("E", text(`SFATAL\0VFATAL\0C${sqlState}\0M${message}\0\0`));
/** How a login ends well. */
export const STARTED = concatBytes([
  AUTHENTICATION_OK,
  parameterStatus("server_version", "18.1"),
  KEY,
  READY,
]);

export class ScriptedServer {
  readonly socket: FakeSocket;
  #buffer: Uint8Array = new Uint8Array(0);
  #isClosed = false;
  #wake: (() => void) | undefined;

  constructor(socket: FakeSocket) {
    this.socket = socket;
    socket.setHandlers({
      data: (bytes) => {
        this.#buffer = concatBytes([this.#buffer, bytes]);
        this.#wake?.();
      },
      drain: () => {},
      close: () => {
        this.#isClosed = true;
        this.#wake?.();
      },
    });
  }

  send(...parts: readonly Uint8Array[]): void {
    this.socket.write(concatBytes(parts));
  }

  /** The parameters of the StartupMessage, in order. */
  async startup(): Promise<string[]> {
    const size = readInt32(await this.bytes(4), 0);
    const packet = await this.bytes(size - 4);
    return decoder.decode(packet.subarray(4)).split("\0").slice(0, -2);
  }

  /** Type and body of the next message. */
  async message(): Promise<{ type: string; body: Uint8Array }> {
    const header = await this.bytes(5);
    const body = await this.bytes(readInt32(header, 1) - 4);
    return { type: String.fromCharCode(header[0] ?? 0), body };
  }

  async bytes(size: number): Promise<Uint8Array> {
    while (this.#buffer.length < size) {
      if (this.#isClosed) throw new Error("the client has closed");
      await this.#change();
    }
    const bytes = this.#buffer.slice(0, size);
    this.#buffer = this.#buffer.slice(size);
    return bytes;
  }

  async closed(): Promise<void> {
    while (!this.#isClosed) await this.#change();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

const OUTCOME = {
  ok: true,
  identity: {
    subject: "app",
    tenant: "shop",
    method: "scram-sha-256",
    claims: {},
    profile: "api",
    expiresAtMs: undefined,
  },
} as const;

/** The server's side of SCRAM-SHA-256 up to and without AuthenticationOk; `forge` may change the server's proof. */
export async function serveScram(
  server: ScriptedServer,
  password: string,
  forge: (serverFinal: Uint8Array) => Uint8Array = (serverFinal) => serverFinal,
): Promise<void> {
  const exchange = new ScramServerExchange({
    user: "app",
    verifier: () => deriveScramVerifier(new Secret(password), new Uint8Array(16).fill(7), 4096),
    outcome: OUTCOME,
    randomBytes: (size) => new Uint8Array(size).fill(9),
  });
  server.send(encodeAuthentication(10, text("SCRAM-SHA-256\0\0")));
  const { body } = await server.message();
  const nameEnd = body.indexOf(0);
  const mechanism = decoder.decode(body.subarray(0, nameEnd));
  const first = await exchange.start(mechanism, body.subarray(nameEnd + 5));
  if (!first.ok) throw new Error(first.failure.clientMessage);
  server.send(encodeAuthentication(11, first.serverFirst));
  const final = exchange.finish((await server.message()).body);
  if (final.ok) server.send(encodeAuthentication(12, forge(final.serverFinal)));
  else server.send(errorFrame(final.failure.sqlState, final.failure.clientMessage));
}
