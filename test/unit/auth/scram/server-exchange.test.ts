// Unit tests of auth/scram/server-exchange.ts.
import { describe, expect, test } from "bun:test";
import type { ScramStartResult } from "#auth/scram/server-exchange.ts";
import type { AuthFailure } from "#auth/identity.ts";
import { passwordFailure } from "#auth/identity.ts";
import {
  createClient,
  createServer,
  IDENTITY,
  toBytes,
  toText,
} from "#test/unit/auth/support/scram.ts";

const CLIENT_NONCE = Buffer.alloc(18, 1).toString("base64");
const SERVER_NONCE = Buffer.alloc(18, 2).toString("base64");

function serverFirstOf(result: ScramStartResult): Uint8Array {
  if (!result.ok) throw new Error(result.failure.clientMessage);
  return result.serverFirst;
}

/** Runs an exchange in which the messages of the client may be bent on their way. */
async function exchange(options: {
  password?: string;
  bendFirst?: (text: string) => string;
  bendFinal?: (text: string) => string;
}) {
  const client = createClient(options.password);
  const server = createServer();
  const { mechanism, message } = client.start(["SCRAM-SHA-256"]);
  const first = (options.bendFirst ?? String)(toText(message));
  const started = await server.start(mechanism, toBytes(first));
  if (!started.ok) return started;
  const final = toText(await client.continue(started.serverFirst));
  return server.finish(toBytes((options.bendFinal ?? String)(final)));
}

function violation(clientMessage: string): { ok: false; failure: AuthFailure } {
  return {
    ok: false,
    failure: { sqlState: "08P01", reason: "protocol_violation", clientMessage },
  };
}

describe("ScramServerExchange", () => {
  test("a right password gives the identity and a signature that the client accepts", async () => {
    const client = createClient();
    const server = createServer();
    const { mechanism, message } = client.start(["SCRAM-SHA-256"]);

    const started = await server.start(mechanism, message);
    const finished = server.finish(await client.continue(serverFirstOf(started)));
    if (!finished.ok) throw new Error(finished.failure.clientMessage);
    client.finish(finished.serverFinal);

    expect(finished.identity).toEqual(IDENTITY);
    expect(client.isVerified).toBe(true);
  });

  test("server-first carries both nonces, the salt and the iterations", async () => {
    const started = await createServer().start("SCRAM-SHA-256", toBytes(`n,,n=,r=${CLIENT_NONCE}`));

    expect(toText(serverFirstOf(started))).toBe(
      `r=${CLIENT_NONCE}${SERVER_NONCE},s=BQUFBQUFBQUFBQUFBQUFBQ==,i=2`,
    );
  });

  test("a wrong password ends in 28P01 with PostgreSQL's words", async () => {
    expect(await exchange({ password: "pencil2" })).toEqual({
      ok: false,
      failure: {
        sqlState: "28P01",
        reason: "wrong_password",
        clientMessage: 'password authentication failed for user "app"',
      },
    });
  });

  test("a right proof for an outcome that is a failure is refused with that failure", async () => {
    const failure = passwordFailure("app", "unknown_user");
    const server = createServer({ ok: false, failure });
    const client = createClient();
    const { mechanism, message } = client.start(["SCRAM-SHA-256"]);

    const started = await server.start(mechanism, message);

    expect(server.finish(await client.continue(serverFirstOf(started)))).toEqual({
      ok: false,
      failure,
    });
  });

  test("a client that would have bound the channel (y) is let in", async () => {
    const server = createServer();
    const client = createClient("pencil", new Uint8Array(32));
    const { mechanism, message } = client.start(["SCRAM-SHA-256"]);

    const started = await server.start(mechanism, message);
    const finished = server.finish(await client.continue(serverFirstOf(started)));

    expect(toText(message).startsWith("y,,")).toBe(true);
    expect(finished.ok).toBe(true);
  });

  const FIRST = "malformed SCRAM message (client-first-message)";
  test.each([
    [
      "channel binding",
      `p=tls-unique,,n=,r=abc`,
      "client requires SCRAM channel binding, which is not supported",
    ],
    [
      "an authorization identity",
      `n,a=root,n=,r=abc`,
      "client uses an authorization identity, which is not supported",
    ],
    ["an unknown binding flag", `x,,n=,r=abc`, FIRST],
    ["no header", `n=,r=abc`, FIRST],
    ["a mandatory extension", `n,,m=x,n=,r=abc`, FIRST],
    ["no user attribute", `n,,r=abc`, FIRST],
    ["no nonce", `n,,n=app`, FIRST],
    ["an empty nonce", `n,,n=,r=`, FIRST],
    ["a nonce with a space", `n,,n=,r=a b`, FIRST],
    ["a NUL", `n,,n=\0,r=abc`, FIRST],
    ["nothing", ``, FIRST],
    ["too many bytes", `n,,n=,r=${"a".repeat(65_528)}`, FIRST],
  ])("a client-first with %s is refused", async (_name, text, message) => {
    expect(await createServer().start("SCRAM-SHA-256", toBytes(text))).toEqual(violation(message));
  });

  test("the largest client-first is read", async () => {
    const text = `n,,n=,r=${"a".repeat(65_535 - 8)}`;

    expect((await createServer().start("SCRAM-SHA-256", toBytes(text))).ok).toBe(true);
  });

  test("optional extensions behind the nonce are ignored", async () => {
    expect((await createServer().start("SCRAM-SHA-256", toBytes("n,,n=app,r=abc,x=1"))).ok).toBe(
      true,
    );
  });

  test.each(["SCRAM-SHA-256-PLUS", "SCRAM-SHA-1", "scram-sha-256", ""])(
    "the mechanism %p is refused",
    async (mechanism) => {
      expect(await createServer().start(mechanism, toBytes("n,,n=,r=abc"))).toEqual(
        violation("client selected an invalid SASL authentication mechanism"),
      );
    },
  );

  const FINAL = "malformed SCRAM message (client-final-message)";
  test.each([
    ["no proof", (text: string) => text.replace(/,p=.*/, ""), FINAL],
    ["a proof that is not last", (text: string) => `${text},x=1`, FINAL],
    ["a short proof", (text: string) => text.replace(/p=.*/, "p=AAAA"), FINAL],
    ["an empty proof", (text: string) => text.replace(/p=.*/, "p="), FINAL],
    [
      "another nonce",
      (text: string) => text.replace("r=", "r=x"),
      "invalid SCRAM response (nonce mismatch)",
    ],
    [
      "another binding",
      (text: string) => text.replace("c=biws", "c=eSws"),
      "SCRAM channel binding check failed",
    ],
    [
      "attributes in another order",
      (text: string) => text.replace(/^(c=[^,]*),(r=[^,]*)/, "$2,$1"),
      FINAL,
    ],
    ["nothing", () => "", FINAL],
  ])("a client-final with %s is refused", async (_name, bendFinal, message) => {
    expect(await exchange({ bendFinal })).toEqual(violation(message));
  });

  test("a client-final that says n after a client-first that said y is refused", async () => {
    const bendFirst = (text: string): string => text.replace("n,,", "y,,");

    expect(await exchange({ bendFirst })).toEqual(violation("SCRAM channel binding check failed"));
  });

  test("steps out of order are refused, and a second try never gets in", async () => {
    const outOfOrder = violation("SCRAM exchange out of order");
    const client = createClient();
    const server = createServer();
    const { mechanism, message } = client.start(["SCRAM-SHA-256"]);

    expect(createServer().finish(toBytes("c=biws,r=x,p=AAAA"))).toEqual(outOfOrder);
    const final = await client.continue(serverFirstOf(await server.start(mechanism, message)));
    expect(server.finish(toBytes("bad")).ok).toBe(false);
    expect(server.finish(final)).toEqual(outOfOrder);
    expect(await server.start(mechanism, message)).toEqual(outOfOrder);
  });
});
