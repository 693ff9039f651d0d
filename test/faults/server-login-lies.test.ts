// Servers that lie: whatever they say here, the login ends with an SQLSTATE and a closed socket, before its deadline.
import { expect, test } from "bun:test";
import { concatBytes } from "#pool/wire/message-types.ts";
import { failureOf, login } from "#test/unit/pool/backend/login-attempt.ts";
import type { Attempt } from "#test/unit/pool/backend/login-attempt.ts";
import {
  AUTHENTICATION_OK,
  KEY,
  READY,
  STARTED,
  frame,
  int32,
  parameterStatus,
  serveScram,
  text,
} from "#test/unit/pool/backend/scripted-server.ts";

const huge = concatBytes([text("R"), int32(0x7fff_ffff), new Uint8Array(100)]);
test.each([
  ["an impossible length", [concatBytes([text("R"), int32(3)])]],
  ["a negative length", [concatBytes([text("R"), int32(-1)])]],
  ["a header that promises 2 GB", [huge]],
  ["a frame above 64 KB", [concatBytes([text("N"), int32(65_536), new Uint8Array(65_532)])]],
  ["a row", [frame("D", int32(0))]],
  ["ReadyForQuery first", [READY]],
  ["parameters before authentication", [parameterStatus("a", "b")]],
  ["an authentication request of one byte", [frame("R", text("x"))]],
  ["AuthenticationOk with a tail", [frame("R", int32(0), text("x"))]],
  ["an MD5 salt of three bytes", [frame("R", int32(5), text("abc"))]],
  ["a list of mechanisms without its end", [frame("R", int32(10), text("SCRAM-SHA-256"))]],
  ["an empty list of mechanisms", [frame("R", int32(10), text("\0"))]],
  ["no mechanism that we know", [frame("R", int32(10), text("GS2-KRB5\0\0"))]],
  ["SASL data without SASL", [frame("R", int32(11), text("r=x"))]],
  ["a SASL end without SASL", [frame("R", int32(12), text("v=x"))]],
  [
    "AuthenticationOk instead of SCRAM's proof",
    [frame("R", int32(10), text("SCRAM-SHA-256\0\0")), AUTHENTICATION_OK],
  ],
  [
    "a second method after SASL",
    [frame("R", int32(10), text("SCRAM-SHA-256\0\0")), frame("R", int32(5), text("salt"))],
  ],
  [
    "a server-first of another exchange",
    [
      frame("R", int32(10), text("SCRAM-SHA-256\0\0")),
      frame("R", int32(11), text("r=abc,s=QUJD,i=4096")),
    ],
  ],
  ["authentication twice", [AUTHENTICATION_OK, AUTHENTICATION_OK]],
  ["a key of another size", [AUTHENTICATION_OK, frame("K", int32(1, 2, 3))]],
  ["no key", [AUTHENTICATION_OK, READY]],
  ["a failed transaction from the start", [AUTHENTICATION_OK, KEY, frame("Z", text("E"))]],
  ["a malformed parameter", [AUTHENTICATION_OK, frame("S", text("name"))]],
  ["a row behind ReadyForQuery", [STARTED, frame("D", int32(0))]],
] as const)("%s ends the login", async (_what, parts) => {
  const attempt = login(async (server) => {
    await server.startup();
    server.send(...parts);
  });
  expect(await failureOf(attempt)).toMatchObject({
    code: "ERR_SERVER_PROTOCOL",
    sqlState: "08P01",
  });
  expect(attempt.transport.connected[0]?.isClosed).toBe(true);
});

test("a login message of exactly 64 KB is read", async () => {
  const { outcome } = login(async (server) => {
    await server.startup();
    server.send(frame("N", new Uint8Array(65_536 - 5)), STARTED);
  });
  expect((await outcome).processId).toBe(4711);
});

test("notices without end are cut off at one megabyte", async () => {
  const notice = frame("N", new Uint8Array(65_000));
  const after = (count: number): Attempt =>
    login(async (server) => {
      await server.startup();
      for (let index = 0; index < count; index += 1) server.send(notice);
      server.send(STARTED);
    });
  expect((await after(16).outcome).processId).toBe(4711);
  expect(await failureOf(after(17))).toMatchObject({ code: "ERR_SERVER_PROTOCOL" });
});

test("a server that can't prove that it knows the password is not believed", async () => {
  const attempt = login(async (server) => {
    await server.startup();
    await serveScram(server, "pencil", (serverFinal) => {
      const forged = serverFinal.slice();
      forged[10] = forged[10] === 65 ? 66 : 65;
      return forged;
    });
    server.send(STARTED);
  });
  expect(await failureOf(attempt)).toMatchObject({
    code: "ERR_SERVER_PROTOCOL",
    sqlState: "08P01",
  });
});
