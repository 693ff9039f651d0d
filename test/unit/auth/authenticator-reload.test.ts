// Unit tests of auth/authenticator.ts: what a reload keeps, forgets and refuses.
import { describe, expect, test } from "bun:test";
import { AuthConfigurationError } from "#auth/authenticator.ts";
import type { AuthPolicy } from "#auth/authenticator.ts";
import {
  PASSWORD_CHECKS_RUNNING_MAX,
  PASSWORD_CHECKS_WAITING_MAX,
} from "#auth/passwords/password-check.ts";
import { Secret } from "#auth/secret.ts";
import {
  CLAIMS,
  createAuthenticator,
  JWT_RULE,
  LOGIN,
  policy,
  SCRAM_RULE,
} from "#test/unit/auth/support/authenticator.ts";
import { FakeIssuer } from "#test/unit/auth/support/issuer-server.ts";
import { PASSWORD } from "#test/unit/auth/support/scram.ts";
import {
  AUDIENCE,
  createTestKey,
  ISSUER,
  signHs256,
  signToken,
} from "#test/unit/auth/support/tokens.ts";

describe("reload", () => {
  test("another policy is in force at once, and remembered passwords and tokens are forgotten", async () => {
    const authenticator = createAuthenticator([JWT_RULE, SCRAM_RULE]);
    const secrets = [new Secret(PASSWORD), new Secret(await signHs256(CLAIMS))];
    const tryAll = async (): Promise<boolean[]> =>
      Promise.all(
        secrets.map(async (secret) => (await authenticator.checkPassword(LOGIN, secret)).ok),
      );
    const before = await tryAll();

    authenticator.reload({
      ...policy([JWT_RULE, { method: "reject" }]),
      issuers: policy([]).issuers,
    });
    const rejected = await tryAll();
    authenticator.reload({ ...policy([{ ...JWT_RULE, issuer: undefined }]), issuers: [] });
    const withoutIssuer = await tryAll();

    expect([before, rejected, withoutIssuer]).toEqual([
      [true, true],
      [false, true],
      [false, false],
    ]);
  });

  test("a remembered password is checked anew after a reload", async () => {
    const authenticator = createAuthenticator([SCRAM_RULE]);
    await authenticator.checkPassword(LOGIN, new Secret(PASSWORD));
    const busy = PASSWORD_CHECKS_RUNNING_MAX + PASSWORD_CHECKS_WAITING_MAX;
    // With the queue full, only a password that needs no derivation gets in.
    const tryWhileBusy = async (): Promise<string> => {
      const others = Array.from({ length: busy }, (_, index) =>
        authenticator.checkPassword(LOGIN, new Secret(`wrong-${index}`)),
      );
      const result = await authenticator.checkPassword(LOGIN, new Secret(PASSWORD));
      await Promise.all(others);
      return result.ok ? "ok" : result.failure.reason;
    };

    const before = await tryWhileBusy();
    authenticator.reload(policy([SCRAM_RULE]));

    expect([before, await tryWhileBusy()]).toEqual(["ok", "too_many_checks"]);
  });

  test("an issuer's keys outlive a reload, even if the issuer is down", async () => {
    const key = await createTestKey("ES256", "k");
    const issuer = new FakeIssuer([key.jwk]);
    const remote: Partial<AuthPolicy> = {
      issuers: [
        {
          issuer: ISSUER,
          audiences: [AUDIENCE],
          keys: { kind: "remote", url: "https://issuer.example/keys" },
        },
      ],
    };
    const authenticator = createAuthenticator([JWT_RULE], remote, issuer);
    const token = new Secret(await signToken(key.privateKey, { alg: "ES256", kid: "k" }, CLAIMS));
    await authenticator.checkJwt({ transport: "http" }, token);

    issuer.goDown();
    authenticator.reload({ ...policy([JWT_RULE]), ...remote });

    expect((await authenticator.checkJwt({ transport: "http" }, token)).ok).toBe(true);
    expect(issuer.requests.length).toBe(1);
  });

  test.each<[string, Partial<AuthPolicy>, string]>([
    [
      "a rule without profile",
      { rules: [SCRAM_RULE, { method: "jwt" }] },
      "auth rule 2 has no profile",
    ],
    [
      "a rule for an unknown issuer",
      { rules: [{ ...JWT_RULE, issuer: "x" }] },
      "auth rule 1 names an unknown issuer",
    ],
    [
      "an issuer twice",
      { issuers: [...policy([]).issuers, ...policy([]).issuers] },
      `issuer "${ISSUER}" is listed twice`,
    ],
    [
      "an issuer without audience",
      { issuers: policy([]).issuers.map((one) => ({ ...one, audiences: [] })) },
      `issuer "${ISSUER}" needs at least one audience, none of them empty`,
    ],
  ])("a policy with %s is refused and the old one stays", async (_name, changes, message) => {
    const authenticator = createAuthenticator([SCRAM_RULE]);

    expect(() => authenticator.reload({ ...policy([SCRAM_RULE]), ...changes })).toThrow(
      new AuthConfigurationError(message),
    );
    expect((await authenticator.checkPassword(LOGIN, new Secret(PASSWORD))).ok).toBe(true);
  });
});
