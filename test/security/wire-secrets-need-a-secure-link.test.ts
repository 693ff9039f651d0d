// What a link may carry that does not count as TLS: a client session is given such a link directly, for every peer of a test is on loopback.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { ClientSession } from "#gateway/session/client-session.ts";
import type { ByteChannel } from "#pool/transport/socket.ts";
import { encodePassword } from "#pool/backend/login-messages.ts";
import { readErrorFields } from "#pool/wire/backend-messages.ts";
import { HEADER_BYTES, concatBytes, readInt32 } from "#pool/wire/message-types.ts";
import { sslRequest, startup } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const SASL = 10;
const CLEARTEXT = 3;
const OK = 0;

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster);
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

/** A client far away; `link` may become secure on the way. */
class FarClient implements ByteChannel {
  readonly link: { isSecure: boolean };
  readonly session: ClientSession;
  readonly queuedBytes = 0;
  isEnded = false;
  #written: Uint8Array[] = [];

  constructor(isSecure: boolean, startTls?: (client: FarClient) => Promise<void>) {
    const { context } = gateway.gateway;
    const link = { isSecure };
    this.link = link;
    if (!context.clients.enter()) throw new Error("no room for a client");
    this.session = new ClientSession({
      context,
      channel: this,
      door: "postgres",
      get isSecure() {
        return link.isSecure;
      },
      remoteAddress: "203.0.113.7",
      bearer: undefined,
      ...(startTls === undefined ? {} : { startTls: () => startTls(this) }),
    });
  }

  write(bytes: Uint8Array): void {
    this.#written.push(bytes.slice());
  }

  pause(): void {}

  resume(): void {}

  end(): void {
    this.isEnded = true;
  }

  destroy(): void {
    this.isEnded = true;
  }

  /** Codes of the authentication requests, and SQLSTATEs of the errors, said so far. */
  get said(): readonly (number | string)[] {
    const bytes = concatBytes(this.#written);
    const said: (number | string)[] = [];
    for (let offset = 0; offset < bytes.length;) {
      const frame = bytes.subarray(offset, offset + readInt32(bytes, offset + 1) + 1);
      const type = String.fromCharCode(frame[0] ?? 0);
      if (type === "R") said.push(readInt32(frame, HEADER_BYTES));
      if (type === "E") said.push(readErrorFields(frame).get("C") ?? "");
      offset += frame.length;
    }
    return said;
  }

  async answers(count: number): Promise<readonly (number | string)[]> {
    await pollUntil(() => this.said.length >= count, 5_000, `${count} answers`);
    return this.said;
  }
}

const login = (user: string): Uint8Array => startup({ user, database: "app" });

test("a user with a SCRAM rule is offered SCRAM on any link", async () => {
  const client = new FarClient(false);
  client.session.data(login("app"));

  expect(await client.answers(1)).toEqual([SASL]);
  client.session.close();
});

test("a user who could only send a token is refused with 28000 before he sends it", async () => {
  const client = new FarClient(false);
  client.session.data(login("anyone"));

  expect(await client.answers(1)).toEqual(["28000"]);
  expect(client.isEnded).toBe(true);
});

test("the same user is asked for it on a secure link, and let in", async () => {
  const client = new FarClient(true);
  const token = new TextEncoder().encode(await gateway.token());
  client.session.data(concatBytes([login("anyone"), encodePassword(token)]));

  expect(await client.answers(2)).toEqual([CLEARTEXT, OK]);
  client.session.close();
});

test("a token that is sent unasked over an insecure link is not taken", async () => {
  const client = new FarClient(false);
  const token = new TextEncoder().encode(await gateway.token());
  client.session.data(concatBytes([login("app"), encodePassword(token)]));

  expect(await client.answers(2)).toEqual([SASL, "08P01"]);
  expect(client.isEnded).toBe(true);
});

test("a link counts as TLS for a startup message that came in one piece with the end of the handshake", async () => {
  // As a TLS 1.3 client sends it; the promise of the handshake settles after the message was delivered.
  const client = new FarClient(false, async ({ link, session }) => {
    link.isSecure = true;
    session.data(login("anyone"));
  });
  client.session.data(sslRequest);

  expect(await client.answers(1)).toEqual([CLEARTEXT]);
  client.session.close();
});

test("a handshake that fails ends the session, and the client is counted no more", async () => {
  const { clients } = gateway.gateway.context;
  const before = clients.clients;
  const client = new FarClient(false, () => Promise.reject(new Error("no TLS")));
  client.session.data(sslRequest);
  await pollUntil(() => client.isEnded, 5_000, "the session ends");

  expect(clients.clients).toBe(before);
});
