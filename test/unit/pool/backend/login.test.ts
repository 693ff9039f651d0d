import { expect, test } from "bun:test";
import fc from "fast-check";
import { Secret } from "#auth/secret.ts";
import type { LoginOptions } from "#pool/backend/login.ts";
import { PoolError } from "#pool/errors.ts";
import { encodeAuthentication } from "#pool/wire/backend-messages.ts";
import { tearBySizes } from "#test/support/fake-socket.ts";
import type { SocketPairOptions } from "#test/support/fake-socket.ts";
import { makeCertificate } from "#test/unit/pool/transport/certificates.ts";
import { REMOTE, failureOf, login } from "./login-attempt.ts";
import {
  AUTHENTICATION_OK,
  STARTED,
  errorFrame,
  fakeServer,
  frame,
  int32,
  parameterStatus,
  serveScram,
  text,
} from "./scripted-server.ts";

const CERTIFICATE = makeCertificate({ name: "db", hosts: ["db.test"] });

test("a trusted login sends user, database and parameters, and brings key and parameters back", async () => {
  let startup: string[] = [];
  const { outcome, clock } = login(async (server) => {
    startup = await server.startup();
    server.send(STARTED);
  });
  const { socket, ...rest } = await outcome;

  expect(startup).toEqual(["application_name", "api", "user", "app", "database", "shop"]);
  expect(rest).toEqual({
    processId: 4711,
    secretKey: Uint8Array.of(1, 2, 3, 4),
    parameters: new Map([["server_version", "18.1"]]),
  });
  expect([socket.isSecure, clock.timerCount]).toEqual([false, 0]);
});

test("a login survives any tearing of the server's bytes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }),
      async (sizes) => {
        const { outcome } = login(
          async (server) => {
            await server.startup();
            await serveScram(server, "pencil");
            server.send(STARTED);
          },
          {},
          { ...REMOTE, tear: tearBySizes(sizes) },
        );
        const { processId, parameters } = await outcome;
        expect([processId, parameters.get("server_version")]).toEqual([4711, "18.1"]);
      },
    ),
    { numRuns: 30, examples: [[[1]]] },
  );
});

test("messages right behind ReadyForQuery are read, and the socket is handed over between frames", async () => {
  const { outcome } = login(
    async (server) => {
      await server.startup();
      server.send(
        STARTED,
        parameterStatus("in_hot_standby", "on"),
        frame("N", text("SNOTICE\0\0")),
      );
    },
    {},
    { ...REMOTE, tear: (bytes) => [bytes.subarray(0, -3), bytes.subarray(-3)] },
  );
  const { socket, parameters } = await outcome;
  const received: number[] = [];
  socket.setHandlers({
    data: (bytes) => received.push(...bytes),
    drain: () => {},
    close: () => {},
  });
  socket.resume();
  await Bun.sleep(0);

  expect([parameters.get("in_hot_standby"), received]).toEqual(["on", []]);
});

test("what comes after the login, and the end behind it, wait for the next handlers", async () => {
  const { outcome } = login(async (server) => {
    await server.startup();
    server.send(STARTED);
    server.send(text("later"));
    server.socket.end();
  });
  const { socket } = await outcome;
  await Bun.sleep(0);
  const events: string[] = [];
  socket.setHandlers({
    data: (bytes) => events.push(Buffer.from(bytes).toString()),
    drain: () => {},
    close: () => events.push("closed"),
  });
  socket.resume();
  await Bun.sleep(0);

  expect(events).toEqual(["later", "closed"]);
});

test("SCRAM with a wrong password is the server's refusal, with its SQLSTATE and its frame", async () => {
  const attempt = login(async (server) => {
    await server.startup();
    await serveScram(server, "another");
  });
  const error = await failureOf(attempt);

  expect(error).toMatchObject({
    code: "ERR_SERVER_LOGIN_REFUSED",
    sqlState: "28P01",
    severity: "FATAL",
  });
  expect(error.serverError?.[0]).toBe("E".charCodeAt(0));
  expect(attempt.transport.connected.map((socket) => socket.isClosed)).toEqual([true]);
});

test("an MD5 request is answered with PostgreSQL's double digest", async () => {
  let answer = "";
  const { outcome } = login(async (server) => {
    await server.startup();
    server.send(encodeAuthentication(5, Uint8Array.of(1, 2, 3, 4)));
    answer = Buffer.from((await server.message()).body).toString();
    server.send(STARTED);
  });
  await outcome;

  const md5 = (...parts: (string | Uint8Array)[]): string => {
    const hasher = new Bun.CryptoHasher("md5");
    for (const part of parts) hasher.update(part);
    return hasher.digest("hex");
  };
  expect(answer).toBe(`md5${md5(md5("pencil", "app"), Uint8Array.of(1, 2, 3, 4))}\0`);
});

/** What a server that asks for the password in clear gets. */
async function clearPassword(
  options: Partial<LoginOptions>,
  pair: SocketPairOptions,
): Promise<string> {
  let answer = "nothing";
  const attempt = login(
    async (server) => {
      if (options.server?.tls.mode === "require") {
        await server.bytes(8);
        server.send(text("S"));
      }
      await server.startup();
      server.send(encodeAuthentication(3));
      answer = Buffer.from((await server.message()).body).toString();
      server.send(STARTED);
    },
    options,
    pair,
  );
  const outcome = await attempt.outcome.then(
    () => "in",
    (error: unknown) => (error instanceof PoolError ? `${error.code} ${error.sqlState}` : "?"),
  );
  return `${answer}, ${outcome}`;
}

test.each([
  ["127.0.0.1", "pencil\0, in"],
  ["127.8.8.8", "pencil\0, in"],
  ["::1", "pencil\0, in"],
  ["::ffff:127.0.0.1", "pencil\0, in"],
  ["192.0.2.7", "nothing, ERR_SERVER_LOGIN_REFUSED 08001"],
  ["::ffff:192.0.2.7", "nothing, ERR_SERVER_LOGIN_REFUSED 08001"],
  ["127.0.0.1.example", "nothing, ERR_SERVER_LOGIN_REFUSED 08001"],
  ["", "nothing, ERR_SERVER_LOGIN_REFUSED 08001"],
])("the password in clear over a plain link to %j: %j", async (remoteAddress, outcome) => {
  expect(await clearPassword({}, { remoteAddress })).toBe(outcome);
});

test("the password in clear is sent over TLS and over a Unix socket", async () => {
  expect(await clearPassword({ server: fakeServer("require") }, REMOTE)).toBe("pencil\0, in");
  const unix = fakeServer("verify-full", "/run/postgresql");
  expect(await clearPassword({ server: unix }, { remoteAddress: unix.address.host })).toBe(
    "pencil\0, in",
  );
});

test("a password with a NUL in it is not sent", async () => {
  const options = { password: new Secret("pen\0cil") };
  expect(await clearPassword(options, { remoteAddress: "::1" })).toBe(
    "nothing, ERR_SERVER_LOGIN_REFUSED 08001",
  );
});

test("a missing password is said, not guessed", async () => {
  const attempt = login(
    async (server) => {
      await server.startup();
      server.send(encodeAuthentication(10, text("SCRAM-SHA-256\0\0")));
    },
    { password: undefined },
  );
  expect(await failureOf(attempt)).toMatchObject({
    code: "ERR_SERVER_LOGIN_REFUSED",
    sqlState: "08001",
    message: "the server asks for a password, but none is configured",
  });
});

test.each([
  ["a NUL in a value", { application_name: "api\0user\0postgres" }],
  ["a NUL in a name", { "application_name\0api\0user": "postgres" }],
  ["an empty name", { "": "x" }],
  ["more than a startup packet takes", { application_name: "x".repeat(10_000) }],
])("startup parameters with %s are refused before anything is sent", async (_what, parameters) => {
  const attempt = login(async () => {}, { parameters });
  expect(await failureOf(attempt)).toMatchObject({
    code: "ERR_SERVER_LOGIN_REFUSED",
    sqlState: "08001",
  });
  expect(attempt.transport.connected).toEqual([]);
});

test("startup parameters can't replace user and database", async () => {
  let startup: string[] = [];
  const { outcome } = login(
    async (server) => {
      startup = await server.startup();
      server.send(STARTED);
    },
    { parameters: { user: "postgres", database: "template1" } },
  );
  await outcome;
  expect(startup).toEqual(["user", "app", "database", "shop"]);
});

test("the deadline covers the whole login and closes the socket", async () => {
  const started = Promise.withResolvers<void>();
  const attempt = login(async (server) => {
    await server.startup();
    server.send(AUTHENTICATION_OK);
    started.resolve();
  });
  await started.promise;
  await Bun.sleep(0);
  attempt.clock.advance(999);
  await Bun.sleep(0);
  expect(attempt.transport.connected[0]?.isClosed).toBe(false);

  attempt.clock.advance(1);
  expect(await failureOf(attempt)).toMatchObject({
    code: "ERR_CONNECT_TIMEOUT",
    sqlState: "08001",
  });
  expect(attempt.transport.connected[0]?.isClosed).toBe(true);
});

test("protocol negotiation that refuses nothing is accepted, and one that refuses an option is not", async () => {
  const negotiate = (count: number, names: string): Uint8Array =>
    frame("v", int32(196_608, count), text(names));
  const fine = login(async (server) => {
    await server.startup();
    server.send(negotiate(0, ""), STARTED);
  });
  expect((await fine.outcome).processId).toBe(4711);

  const refused = login(async (server) => {
    await server.startup();
    server.send(negotiate(1, "_pq_.x\0"), STARTED);
  });
  expect(await failureOf(refused)).toMatchObject({ code: "ERR_SERVER_LOGIN_REFUSED" });
});

test("SCRAM binds to the certificate where the server offers it, and says that it could where not", async () => {
  const offered = async (mechanisms: string): Promise<string> => {
    let first = "";
    const attempt = login(
      async (server) => {
        await server.bytes(8);
        server.send(text("S"));
        await server.startup();
        server.send(encodeAuthentication(10, text(mechanisms)));
        first = Buffer.from((await server.message()).body).toString();
        server.socket.end();
      },
      { server: fakeServer("require") },
    );
    attempt.transport.certificate = CERTIFICATE.der;
    await failureOf(attempt);
    return first.replace(/\0.{4}/s, " ").replace(/n=.*/, "");
  };
  expect(await offered("SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")).toBe(
    "SCRAM-SHA-256-PLUS p=tls-server-end-point,,",
  );
  expect(await offered("SCRAM-SHA-256\0\0")).toBe("SCRAM-SHA-256 y,,");
});

test.each([1, 2, 6, 7, 8, 9, 13, 255])(
  "authentication method %d is not supported",
  async (code) => {
    const attempt = login(async (server) => {
      await server.startup();
      server.send(encodeAuthentication(code));
    });
    expect(await failureOf(attempt)).toMatchObject({
      code: "ERR_NOT_SUPPORTED",
      sqlState: "08001",
    });
  },
);

test("an error during the start is the server's refusal, and an end without a word is a failed connect", async () => {
  const full = login(async (server) => {
    await server.startup();
    server.send(AUTHENTICATION_OK, errorFrame("53300", "sorry, too many clients already"));
  });
  expect(await failureOf(full)).toMatchObject({
    code: "ERR_SERVER_LOGIN_REFUSED",
    sqlState: "53300",
    message: "the server refused the login: sorry, too many clients already",
  });
  const gone = login(async (server) => {
    await server.startup();
    server.socket.end();
  });
  expect(await failureOf(gone)).toMatchObject({ code: "ERR_CONNECT_FAILED", sqlState: "08001" });
});

test("no error of a login shows the password", async () => {
  const attempt = login(async (server) => {
    await server.startup();
    server.send(encodeAuthentication(3));
  });
  const error = await failureOf(attempt);
  expect(Bun.inspect(error)).not.toContain("pencil");
});
