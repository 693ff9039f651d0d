// A WebSocket client that speaks the PostgreSQL protocol byte by byte, so that tests decide what is in one message.
import { readErrorFields } from "#pool/wire/backend-messages.ts";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import { encodeQuery } from "#pool/wire/frontend-messages.ts";
import { Backend, concatBytes, writeInt32 } from "#pool/wire/message-types.ts";
import type { TestGateway } from "#test/support/test-gateway.ts";
import { eventually } from "./http-client.ts";

const encoder = new TextEncoder();

export function startupPacket(user: string, database: string): Uint8Array {
  const body = encoder.encode(`user\0${user}\0database\0${database}\0\0`);
  const packet = new Uint8Array(8 + body.length);
  writeInt32(packet, 0, packet.length);
  writeInt32(packet, 4, 3 << 16);
  packet.set(body, 8);
  return packet;
}

export function passwordMessage(password: string): Uint8Array {
  const message = encodeQuery(password);
  message[0] = "p".charCodeAt(0);
  return message;
}

export interface PeerFrame {
  readonly type: string;
  readonly bytes: Uint8Array;
}

export class WebSocketPeer {
  readonly socket: WebSocket;
  /** What the gateway has said, in order; large frames are counted only. */
  readonly frames: PeerFrame[] = [];
  /** Sizes of the messages that it came in. */
  readonly messageSizes: number[] = [];
  bytesReceived = 0;
  /** The close code. */
  readonly closed: Promise<number>;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    const splitter = new FrameSplitter(
      {
        frame: (type, chunk, start, end) =>
          this.frames.push({
            type: String.fromCharCode(type),
            bytes: chunk.subarray(start, end),
          }),
        largeStart: () => {},
        largeBytes: () => {},
        violation: (reason) => {
          throw new Error(reason);
        },
      },
      1_000_000_000,
    );
    socket.addEventListener("message", ({ data }) => {
      if (!(data instanceof ArrayBuffer)) throw new Error("the gateway sent a text message");
      this.messageSizes.push(data.byteLength);
      this.bytesReceived += data.byteLength;
      splitter.push(new Uint8Array(data));
    });
    const closed = Promise.withResolvers<number>();
    this.closed = closed.promise;
    socket.addEventListener("close", ({ code }) => closed.resolve(code));
  }

  static async open(
    gateway: TestGateway,
    path = "/v2",
    headers: Readonly<Record<string, string>> = {},
  ): Promise<WebSocketPeer> {
    const socket = new WebSocket(`${gateway.http.replace("http", "ws")}${path}`, { headers });
    const peer = new WebSocketPeer(socket);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("error", () => reject(new Error("no WebSocket")));
    });
    return peer;
  }

  send(...messages: Uint8Array[]): void {
    this.socket.send(concatBytes(messages));
  }

  /** In one message, as the serverless driver does. */
  async logIn(user: string, password: string, database: string): Promise<void> {
    this.send(startupPacket(user, database), passwordMessage(password));
    await this.until("Z");
  }

  /** Waits until `count` frames of this type have come. */
  async until(type: string, count = 1): Promise<void> {
    await eventually(() => this.frames.filter((frame) => frame.type === type).length >= count);
  }

  types(): string {
    return this.frames.map(({ type }) => type).join("");
  }

  /** SQLSTATEs of the errors so far. */
  errors(): (string | undefined)[] {
    return this.frames
      .filter(({ type }) => type.charCodeAt(0) === Backend.ERROR_RESPONSE)
      .map(({ bytes }) => readErrorFields(bytes).get("C"));
  }
}
