// Unit tests of auth/authenticator.ts: methods, passwords, proofs and tokens. Reload has its own file.
import { describe, expect, test } from "bun:test";
import type { Authenticator, LoginRequest } from "#auth/authenticator.ts";
import type { AuthFailure, AuthResult } from "#auth/identity.ts";
import type { AuthRule } from "#auth/rules.ts";
import { Secret } from "#auth/secret.ts";
import {
  CLAIMS,
  createAuthenticator,
  failureOf,
  JWT_RULE,
  LOGIN,
  SCRAM_RULE,
} from "#test/unit/auth/support/authenticator.ts";
import { createClient, IDENTITY, PASSWORD } from "#test/unit/auth/support/scram.ts";
import { ISSUER, NOW_MS, signHs256 } from "#test/unit/auth/support/tokens.ts";

const wrongPassword = (user: string, reason: AuthFailure["reason"]): AuthFailure => ({
  sqlState: "28P01",
  reason,
  clientMessage: `password authentication failed for user "${user}"`,
});
const INSECURE: AuthFailure = {
  sqlState: "28000",
  reason: "insecure_transport",
  clientMessage: "password or JWT authentication requires TLS",
};

describe("wireMethod", () => {
  const PASSWORD_RULE: AuthRule = { method: "password", profile: "server" };

  test.each<[string, readonly AuthRule[], Partial<LoginRequest>, string]>([
    ["a scram rule", [SCRAM_RULE], {}, "scram-sha-256"],
    [
      "a scram rule over a link that can be read",
      [SCRAM_RULE],
      { isSecure: false },
      "scram-sha-256",
    ],
    [
      "a scram rule for a client that only sends cleartext",
      [SCRAM_RULE],
      { cleartextOnly: true },
      "cleartext",
    ],
    [
      "that, over a link that can be read",
      [SCRAM_RULE],
      { cleartextOnly: true, isSecure: false },
      "insecure_transport",
    ],
    ["a password rule", [PASSWORD_RULE], {}, "cleartext"],
    [
      "a password rule over a link that can be read",
      [PASSWORD_RULE, SCRAM_RULE],
      { isSecure: false },
      "insecure_transport",
    ],
    ["a jwt rule", [JWT_RULE, SCRAM_RULE], {}, "cleartext"],
    [
      "a jwt rule over a link that can be read",
      [JWT_RULE],
      { isSecure: false },
      "insecure_transport",
    ],
    [
      "a jwt rule that cannot be used before a scram rule",
      [JWT_RULE, SCRAM_RULE],
      { isSecure: false },
      "scram-sha-256",
    ],
    [
      "a jwt rule for another user",
      [{ ...JWT_RULE, user: "jwt" }, SCRAM_RULE],
      {},
      "scram-sha-256",
    ],
    [
      "a jwt rule of another database",
      [{ ...JWT_RULE, profile: "reports" }, SCRAM_RULE],
      {},
      "scram-sha-256",
    ],
    ["a reject rule", [{ method: "reject", user: "app" }, SCRAM_RULE], {}, "rejected_by_rule"],
    ["no rule, to hide that", [SCRAM_RULE], { user: "eve" }, "scram-sha-256"],
    [
      "no rule for a client that only sends cleartext",
      [SCRAM_RULE],
      { user: "eve", cleartextOnly: true },
      "cleartext",
    ],
    [
      "that, over a link that can be read",
      [],
      { cleartextOnly: true, isSecure: false },
      "insecure_transport",
    ],
  ])("is decided by %s", (_name, rules, changes, expected) => {
    const method = createAuthenticator(rules).wireMethod({ ...LOGIN, ...changes });

    const answer: string = method.kind === "refuse" ? method.failure.reason : method.kind;
    expect(answer).toBe(expected);
  });
});

describe("scramExchange", () => {
  async function login(
    authenticator: Authenticator,
    request: LoginRequest,
    password: string = PASSWORD,
  ): Promise<AuthResult> {
    const client = createClient(password);
    const server = authenticator.scramExchange(request);
    const { mechanism, message } = client.start(["SCRAM-SHA-256"]);
    const started = await server.start(mechanism, message);
    if (!started.ok) return started;
    const finished = server.finish(await client.continue(started.serverFirst));
    if (finished.ok) client.finish(finished.serverFinal);
    return finished.ok ? { ok: true, identity: finished.identity } : finished;
  }

  test("a right password gives the identity of the rule", async () => {
    expect(await login(createAuthenticator([SCRAM_RULE]), LOGIN)).toEqual({
      ok: true,
      identity: { ...IDENTITY, tenant: "tenant of server" },
    });
  });

  test("wrong password, unknown user and no rule look alike", async () => {
    const authenticator = createAuthenticator([{ ...SCRAM_RULE, user: undefined }]);

    expect(failureOf(await login(authenticator, LOGIN, "wrong"))).toEqual(
      wrongPassword("app", "wrong_password"),
    );
    expect(failureOf(await login(authenticator, { ...LOGIN, user: "eve" }))).toEqual(
      wrongPassword("eve", "unknown_user"),
    );
    expect(failureOf(await login(authenticator, { ...LOGIN, database: "reports" }))).toEqual(
      wrongPassword("app", "no_rule"),
    );
  });

  test("a user with a right password but a rule for another method is not let in by SCRAM", async () => {
    const authenticator = createAuthenticator([{ method: "password", profile: "server" }]);

    expect(failureOf(await login(authenticator, LOGIN)).reason).toBe("no_rule");
  });

  test("server-first of an unknown user has the same form as that of a known one", async () => {
    const authenticator = createAuthenticator([{ ...SCRAM_RULE, user: undefined }]);
    const serverFirst = async (user: string): Promise<string> => {
      const { mechanism, message } = createClient().start(["SCRAM-SHA-256"]);
      const result = await authenticator
        .scramExchange({ ...LOGIN, user })
        .start(mechanism, message);
      return result.ok ? new TextDecoder().decode(result.serverFirst) : "refused";
    };
    const form = (text: string): string => text.replace(/s=[^,]{24},/, "s=…,");

    expect(form(await serverFirst("eve"))).toBe(form(await serverFirst("app")));
    expect(await serverFirst("eve")).toBe(await serverFirst("eve"));
  });
});

describe("checkPassword", () => {
  test("a right password gives an identity of method password, also under a scram rule", async () => {
    const result = await createAuthenticator([JWT_RULE, SCRAM_RULE]).checkPassword(
      LOGIN,
      new Secret(PASSWORD),
    );

    expect(result).toEqual({
      ok: true,
      identity: { ...IDENTITY, method: "password", tenant: "tenant of server" },
    });
  });

  test.each<[string, Partial<LoginRequest>, string, AuthFailure]>([
    ["a wrong password", {}, "wrong", wrongPassword("app", "wrong_password")],
    ["an empty password", {}, "", wrongPassword("app", "wrong_password")],
    ["a user that no rule lets in", { user: "bob" }, PASSWORD, wrongPassword("bob", "no_rule")],
    ["an unknown user", { user: "eve" }, PASSWORD, wrongPassword("eve", "no_rule")],
    ["another database", { database: "reports" }, PASSWORD, wrongPassword("app", "no_rule")],
    ["a link that can be read", { isSecure: false }, PASSWORD, INSECURE],
  ])("%s is refused", async (_name, changes, password, failure) => {
    const authenticator = createAuthenticator([SCRAM_RULE]);

    expect(
      failureOf(await authenticator.checkPassword({ ...LOGIN, ...changes }, new Secret(password))),
    ).toEqual(failure);
  });

  test("a user that a rule would let in but nobody knows is refused like a wrong password", async () => {
    const authenticator = createAuthenticator([{ method: "password", profile: "server" }]);

    expect(
      failureOf(await authenticator.checkPassword({ ...LOGIN, user: "eve" }, new Secret("x"))),
    ).toEqual(wrongPassword("eve", "unknown_user"));
  });

  test("a reject rule stands before the rules behind it", async () => {
    const authenticator = createAuthenticator([{ method: "reject", user: "app" }, SCRAM_RULE]);

    expect(failureOf(await authenticator.checkPassword(LOGIN, new Secret(PASSWORD)))).toEqual({
      sqlState: "28000",
      reason: "rejected_by_rule",
      clientMessage: 'connection is rejected for user "app", database "app"',
    });
  });

  test("a JWT is taken as a token where a jwt rule may apply, whatever the user", async () => {
    const authenticator = createAuthenticator([JWT_RULE, SCRAM_RULE]);
    const token = new Secret(await signHs256(CLAIMS));

    expect(await authenticator.checkPassword({ ...LOGIN, user: "jwt" }, token)).toEqual({
      ok: true,
      identity: {
        subject: "user-1",
        tenant: "acme",
        method: "jwt",
        claims: CLAIMS,
        profile: "app",
        expiresAtMs: NOW_MS + 600_000,
      },
    });
    expect(failureOf(await createAuthenticator([SCRAM_RULE]).checkPassword(LOGIN, token))).toEqual(
      wrongPassword("app", "wrong_password"),
    );
  });

  test("a JWT is refused over a link that can be read", async () => {
    const token = new Secret(await signHs256(CLAIMS));

    expect(
      failureOf(
        await createAuthenticator([JWT_RULE]).checkPassword({ ...LOGIN, isSecure: false }, token),
      ),
    ).toEqual(INSECURE);
  });

  test("a flood of different passwords is told 53300 at the queue's end", async () => {
    const authenticator = createAuthenticator([SCRAM_RULE]);

    const results = await Promise.all(
      Array.from({ length: 2 + 256 + 1 }, (_, index) =>
        authenticator.checkPassword(LOGIN, new Secret(`wrong-${index}`)),
      ),
    );

    expect(results.filter((result) => failureOf(result).sqlState === "53300").length).toBe(1);
    expect(failureOf(results.at(-1) ?? { ok: true, identity: IDENTITY })).toEqual({
      sqlState: "53300",
      reason: "too_many_checks",
      clientMessage: "too many password checks at the same time, try again",
    });
  });
});

describe("checkJwt", () => {
  const token = async (claims: Record<string, unknown>): Promise<Secret> =>
    new Secret(await signHs256(claims));

  test("without a database the rule's profile decides", async () => {
    const result = await createAuthenticator([JWT_RULE]).checkJwt(
      { transport: "http" },
      await token(CLAIMS),
    );

    expect(result.ok && [result.identity.profile, result.identity.tenant]).toEqual(["app", "acme"]);
  });

  test.each<[string, readonly AuthRule[], Record<string, unknown>, AuthFailure["reason"], string]>([
    ["no rule for its claims", [JWT_RULE], { role: "anon" }, "no_rule", "no rule accepts this JWT"],
    [
      "a reject rule",
      [{ method: "reject", issuer: ISSUER }, JWT_RULE],
      {},
      "rejected_by_rule",
      "no rule accepts this JWT",
    ],
    [
      "no tenant",
      [JWT_RULE],
      { org_id: undefined },
      "tenant_claim",
      "the identity names no valid tenant",
    ],
    [
      "a profile of another database",
      [{ ...JWT_RULE, profile: "reports" }],
      {},
      "token_database",
      'this JWT gives no access to database "app"',
    ],
    ["an expiry in the past", [JWT_RULE], { exp: 1 }, "token_expired", "JWT has expired"],
  ])("a token with %s is refused", async (_name, rules, changes, reason, clientMessage) => {
    const result = await createAuthenticator(rules).checkJwt(
      { transport: "http", database: "app" },
      await token({ ...CLAIMS, ...changes }),
    );

    expect(failureOf(result)).toEqual({ sqlState: "28000", reason, clientMessage });
  });

  test("a role in the token chooses no profile by its name", async () => {
    const claims = { ...CLAIMS, role: "postgres", profile: "server", user: "app" };

    expect(
      failureOf(
        await createAuthenticator([JWT_RULE]).checkJwt({ transport: "http" }, await token(claims)),
      ).reason,
    ).toBe("no_rule");
  });
});
