// What a client sends before and during its login: garbage, torn and oversize packets, encryption requests, and silence.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { RawClient, frontendFrame, int32, sslRequest, startup } from "#test/support/raw-client.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const GSSENC_REQUEST = concatBytes([int32(8), int32(80_877_104)]);
const STARTUP = startup({ user: "app", database: "app" });
const STARTUP_BYTES_MAX = 10_000;

let cluster: Cluster;
let plain: TestGateway;
let withTls: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  const sections = { gateway: "client_login_timeout = 2" };
  plain = await testGateway(cluster, { sections });
  withTls = await testGateway(cluster, { sections, tls: true });
});
afterAll(async () => {
  await plain.stop();
  await withTls.stop();
  await cluster.stop();
});

function census(gateway: TestGateway): readonly number[] {
  const { clients, sessions, cancels } = gateway.gateway.context;
  return [clients.clients, clients.logins, sessions.size, cancels.size];
}

/** Nobody is counted any more. */
function isEmpty(gateway: TestGateway): boolean {
  return census(gateway).every((count) => count === 0);
}

async function answerTo(...bytes: readonly Uint8Array[]): Promise<readonly string[]> {
  const client = await RawClient.open(plain.postgres.port);
  client.send(...bytes);
  return (await client.rest()).errors;
}

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

test.each([
  ["an HTTP request", text("GET / HTTP/1.1\r\nHost: gw\r\n\r\n")],
  ["an SSH banner", text("SSH-2.0-OpenSSH_9.6\r\n")],
  ["a TLS hello without a request", new Uint8Array([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])],
  ["zeros", new Uint8Array(64)],
  ["0xff", new Uint8Array(64).fill(0xff)],
  ["a length below 8", concatBytes([int32(7), new Uint8Array(3)])],
  ["a negative length", concatBytes([int32(-1), int32(3 << 16)])],
  ["a length over the limit", concatBytes([int32(STARTUP_BYTES_MAX + 1), int32(3 << 16)])],
  ["protocol 2.0", startup({ user: "app" }, 2 << 16)],
  ["a packet without terminator", concatBytes([int32(13), int32(3 << 16), text("user\0")])],
  ["an SSLRequest that is too long", concatBytes([int32(12), int32(80_877_103), int32(0)])],
  ["a cancel request without a key", concatBytes([int32(12), int32(80_877_102), int32(1)])],
])("%s instead of a startup packet is answered 08P01 and closed", async (_, bytes) => {
  const errors = await answerTo(bytes);

  expect(errors).toEqual(["08P01"]);
  expect(isEmpty(plain)).toBe(true);
});

test.each([
  ["no user", { database: "app" }, "28000"],
  ["an empty user", { user: "", database: "app" }, "28000"],
  ["a replication connection", { user: "app", replication: "true" }, "0A000"],
  ["an unknown database", { user: "app", database: "nowhere" }, "3D000"],
  ["the user's name as database, which is none", { user: "nobody" }, "3D000"],
  ["switches that are no settings", { user: "app", database: "app", options: "-B 100" }, "0A000"],
  ["a name that can be no setting", { user: "app", database: "app", "a'b": "x" }, "42704"],
])("a startup message with %s is refused", async (_, parameters, sqlState) => {
  expect(await answerTo(startup(parameters))).toEqual([sqlState]);
  expect(isEmpty(plain)).toBe(true);
});

test("a startup packet as long as the limit is read", async () => {
  const bare = startup({ user: "app", database: "app", application_name: "" }).length;
  const client = await RawClient.open(plain.postgres.port);

  const padded = startup({
    user: "app",
    database: "app",
    application_name: "x".repeat(STARTUP_BYTES_MAX - bare),
  });
  client.send(padded);
  const { type } = await client.message();
  client.destroy();

  expect(padded.length).toBe(STARTUP_BYTES_MAX);
  expect(type).toBe("R");
});

test("a startup packet torn at any byte is put together", async () => {
  const answers: string[] = [];
  for (let cut = 1; cut < STARTUP.length; cut++) {
    const client = await RawClient.open(plain.postgres.port);
    await client.sent(STARTUP.subarray(0, cut));
    await client.sent(STARTUP.subarray(cut));
    answers.push((await client.message()).type);
    client.destroy();
  }

  expect(answers).toEqual(Array.from({ length: STARTUP.length - 1 }, () => "R"));
});

test("a client that leaves after any number of bytes is forgotten", async () => {
  for (let cut = 0; cut <= STARTUP.length; cut++) {
    const client = await RawClient.open(plain.postgres.port);
    await client.sent(STARTUP.subarray(0, cut));
    client.destroy();
  }

  await pollUntil(() => isEmpty(plain), 5_000, "all are forgotten");
  expect(census(plain)).toEqual([0, 0, 0, 0]);
});

test("encryption that is not offered is answered N, in any order, and the login goes on in the clear", async () => {
  const client = await RawClient.open(plain.postgres.port);
  client.send(GSSENC_REQUEST);
  const first = await client.bytes(1);
  client.send(sslRequest);
  const second = await client.bytes(1);
  await client.authenticate({ port: plain.postgres.port, password: cluster.passwords.app });
  const { rows } = await client.query("select 1");
  client.terminate();

  expect([...first, ...second]).toEqual([0x4e, 0x4e]);
  expect(rows).toEqual([["1"]]);
});

test.each([
  ["SSLRequest", sslRequest],
  ["GSSENCRequest", GSSENC_REQUEST],
])("bytes behind an %s in the same packet close the connection unanswered", async (_, request) => {
  const answers = await Promise.all(
    [plain, withTls].map(async ({ postgres }) => {
      const client = await RawClient.open(postgres.port);
      client.send(request, STARTUP);
      return (await client.rest()).types;
    }),
  );

  expect(answers).toEqual(["E", "E"]);
});

test("a second SSLRequest closes the connection", async () => {
  const client = await RawClient.open(plain.postgres.port);
  client.send(sslRequest);
  await client.bytes(1);
  client.send(sslRequest);

  expect((await client.rest()).errors).toEqual(["08P01"]);
});

test("plain bytes instead of a TLS handshake close the connection, and nobody is counted any more", async () => {
  const client = await RawClient.open(withTls.postgres.port);
  client.send(sslRequest);
  const offer = await client.bytes(1);
  client.send(STARTUP);
  await client.ended();
  await pollUntil(() => isEmpty(withTls), 5_000, "the client is forgotten");

  expect([...offer]).toEqual([0x53]);
});

test("a client that is silent at any point of its login is closed after client_login_timeout", async () => {
  const errors = await Promise.all([
    answerTo(),
    answerTo(STARTUP.subarray(0, 20)),
    answerTo(STARTUP),
    answerTo(STARTUP, frontendFrame("p", text("half")).subarray(0, 7)),
  ]);

  expect(errors).toEqual([["57014"], ["57014"], ["57014"], ["57014"]]);
  expect(isEmpty(plain)).toBe(true);
});

test("a client that never begins its TLS handshake is closed after client_login_timeout", async () => {
  const client = await RawClient.open(withTls.postgres.port);
  client.send(sslRequest);
  await client.bytes(1);
  await client.ended();
  await pollUntil(() => isEmpty(withTls), 5_000, "the client is forgotten");

  expect(census(withTls)).toEqual([0, 0, 0, 0]);
});

test.each([
  ["a query", frontendFrame("Q", "select 1")],
  ["a password message without its end", frontendFrame("p", text("x"))],
  ["a SASL response of another mechanism", frontendFrame("p", "SCRAM-MD5", int32(0))],
  [
    "a SASL response whose length lies",
    frontendFrame("p", "SCRAM-SHA-256", int32(99), text("n,,")),
  ],
  [
    "a message too long for a login",
    concatBytes([text("p"), int32(70_000), new Uint8Array(70_000)]),
  ],
  ["a frame with a negative length", concatBytes([text("p"), int32(-5)])],
])("%s instead of a SASL response is answered 08P01 and closed", async (_, bytes) => {
  expect(await answerTo(STARTUP, bytes)).toEqual(["08P01"]);
  expect(isEmpty(plain)).toBe(true);
});

test("a newer minor version and unknown protocol options are negotiated down, and the login goes on", async () => {
  const client = await RawClient.open(plain.postgres.port);
  client.send(startup({ user: "app", database: "app", "_pq_.colours": "on" }, (3 << 16) | 2));
  const { type, frame } = await client.message();
  const next = await client.message();
  client.destroy();

  expect(type).toBe("v");
  expect([...frame.subarray(5)]).toEqual([0, 3, 0, 0, 0, 0, 0, 1, ...text("_pq_.colours\0")]);
  expect(next.type).toBe("R");
});
