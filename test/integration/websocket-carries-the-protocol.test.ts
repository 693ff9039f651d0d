// The WebSocket door with a client that decides what is in one message: framing, login, cancel, close, and a reader that does not read.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { TERMINATE_FRAME, encodeQuery } from "#pool/wire/frontend-messages.ts";
import { readInt32, writeInt32 } from "#pool/wire/message-types.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { eventually, rawHttp } from "./http-client.ts";
import { WebSocketPeer, passwordMessage, startupPacket } from "./websocket-peer.ts";

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

const open = (path?: string, headers?: Record<string, string>): Promise<WebSocketPeer> =>
  WebSocketPeer.open(gateway, path, headers);
const password = (): string => cluster.passwords.app;
const clients = (): number => gateway.gateway.context.clients.clients;

describe("a session", () => {
  test("takes startup, password and query in one message, on each of its paths", async () => {
    for (const path of ["/v2", "/v1?address=10.0.0.1:5432", "/sql", "/"]) {
      const peer = await open(path);

      peer.send(startupPacket("app", "app"), passwordMessage(password()), encodeQuery("select 7"));
      await peer.until("Z", 2);

      expect(peer.types()).toMatch(/^RRS+KZTDCZ$/);
      peer.send(TERMINATE_FRAME);
      expect(await peer.closed).toBe(1000);
    }
    await eventually(() => clients() === 0);
  });

  test("takes its bytes in any pieces", async () => {
    const peer = await open();
    const bytes = Buffer.concat([
      startupPacket("app", "app"),
      passwordMessage(password()),
      encodeQuery("select 7"),
    ]);

    for (const byte of bytes) peer.send(new Uint8Array([byte]));
    await peer.until("Z", 2);

    expect(peer.types()).toMatch(/^RRS+KZTDCZ$/);
    peer.send(TERMINATE_FRAME);
    await peer.closed;
  });

  test("is logged in by a token: as its password, or with the upgrade", async () => {
    const asPassword = await open();
    await asPassword.logIn("anybody", await gateway.token(), "app");
    const withUpgrade = await open("/v2", { Authorization: `Bearer ${await gateway.token()}` });
    withUpgrade.send(startupPacket("anybody", "app"), passwordMessage(""), encodeQuery("select 1"));
    await withUpgrade.until("Z", 2);

    expect(withUpgrade.types()).toMatch(/^RS+KZTDCZ$/);
    for (const peer of [asPassword, withUpgrade]) {
      peer.send(TERMINATE_FRAME);
      await peer.closed;
    }
  });

  test("with a wrong password is told 28P01 before it is closed", async () => {
    const peer = await open();

    peer.send(startupPacket("app", "app"), passwordMessage("wrong"), encodeQuery("select 1"));

    expect(await peer.closed).toBe(1000);
    expect(peer.errors()).toEqual(["28P01"]);
    await eventually(() => clients() === 0);
  });

  test("that is closed without Terminate inside a transaction leaves nothing", async () => {
    const peer = await open();
    await peer.logIn("app", password(), "app");
    peer.send(encodeQuery("begin; create table ws_left (); select pg_sleep(60)"));
    await eventually(async () => {
      const rows = await cluster.primary.sql(
        "select 1 from pg_stat_activity where usename = 'app' and state = 'active'",
      );
      return rows.length === 1;
    });

    peer.socket.close();

    await eventually(async () => {
      const rows = await cluster.primary.sql(
        "select 1 from pg_stat_activity where usename = 'app' and state <> 'idle'",
      );
      return rows.length === 0;
    });
    await eventually(() => clients() === 0);
    expect(await cluster.primary.sql("select to_regclass('ws_left') as left")).toEqual([
      { left: null },
    ]);
  });

  test("can be cancelled by its key from another WebSocket, which is closed without a word", async () => {
    const peer = await open();
    await peer.logIn("app", password(), "app");
    const key = peer.frames.find(({ type }) => type === "K")?.bytes ?? new Uint8Array();
    const cancel = new Uint8Array(16);
    writeInt32(cancel, 0, 16);
    writeInt32(cancel, 4, 80_877_102);
    writeInt32(cancel, 8, readInt32(key, 5));
    cancel.set(key.subarray(9, 13), 12);
    peer.send(encodeQuery("select pg_sleep(60)"));
    await eventually(async () => {
      const rows = await cluster.primary.sql(
        "select 1 from pg_stat_activity where query like '%pg_sleep(60)%' and state = 'active' and usename = 'app'",
      );
      return rows.length === 1;
    });

    const canceller = await open();
    canceller.send(cancel);

    expect(await canceller.closed).toBe(1000);
    expect(canceller.frames).toEqual([]);
    await peer.until("Z", 2);
    expect(peer.errors()).toEqual(["57014"]);
    peer.send(TERMINATE_FRAME);
    await peer.closed;
  });
});

describe("framing", () => {
  test("a text message ends the WebSocket with 1003", async () => {
    const peer = await open();

    peer.socket.send("select 1");

    expect(await peer.closed).toBe(1003);
    await eventually(() => clients() === 0);
  });

  test("garbage in place of a startup packet is answered and closed", async () => {
    const peer = await open();

    peer.send(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));

    expect(await peer.closed).toBe(1000);
    expect(peer.errors()).toEqual(["08P01"]);
  });

  test("a large result comes whole in messages of at most 1 MiB, and so does a large parameter go", async () => {
    const peer = await open();
    await peer.logIn("app", password(), "app");
    const before = peer.bytesReceived;

    peer.send(encodeQuery("select repeat('x', 1000) from generate_series(1, 20000)"));
    await peer.until("Z", 2);
    expect(peer.frames.filter(({ type }) => type === "D")).toHaveLength(20_000);
    expect(peer.bytesReceived - before).toBeGreaterThan(20_000_000);
    expect(Math.max(...peer.messageSizes)).toBeLessThanOrEqual(1_048_576);

    peer.send(encodeQuery(`select length('${"y".repeat(20_000_000)}')`));
    await peer.until("Z", 3);
    const row = peer.frames.filter(({ type }) => type === "D").at(-1);
    expect(Buffer.from(row?.bytes.subarray(11) ?? []).toString()).toBe("20000000");
    peer.send(TERMINATE_FRAME);
    await peer.closed;
  });
});

describe("an upgrade", () => {
  const request = (headers: string) =>
    rawHttp(gateway, `GET /v2 HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n${headers}\r\n`);

  test("that is none is told what this address is for", async () => {
    const answer = await request("");

    expect(answer).toStartWith("HTTP/1.1 426");
    expect(answer).toContain("PostgreSQL protocol over WebSocket");
  });

  test("with a subprotocol is refused, for none is spoken", async () => {
    const answer = await request(
      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-ws\r\n",
    );

    expect(answer).toStartWith("HTTP/1.1 400");
  });

  test("spelled in capitals is one", async () => {
    const answer = await rawHttp(
      gateway,
      "GET /v2 HTTP/1.1\r\nHost: gw\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n" +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
        // A masked close frame with code 1000 (RFC 6455, "Close").
        "\x88\x82\0\0\0\0\x03\xe8",
    );

    expect(answer).toStartWith("HTTP/1.1 101");
    await eventually(() => clients() === 0);
  });

  test("with two credentials is refused", async () => {
    const outcome = await open("/v2", { Authorization: "Bearer a, Bearer b" }).then(
      () => "open",
      () => "refused",
    );

    expect(outcome).toBe("refused");
  });
});
