// A policy with one issuer, two users and rules to choose, for the tests of the authenticator.
import { Authenticator } from "#auth/authenticator.ts";
import type { AuthPolicy, LoginRequest } from "#auth/authenticator.ts";
import type { AuthFailure, AuthResult } from "#auth/identity.ts";
import { UserList } from "#auth/passwords/user-list.ts";
import type { AuthRule } from "#auth/rules.ts";
import { formatScramVerifier } from "#auth/scram/verifier.ts";
import { Secret } from "#auth/secret.ts";
import { FakeIssuer } from "#test/unit/auth/support/issuer-server.ts";
import { fixedBytes, verifier } from "#test/unit/auth/support/scram.ts";
import {
  AUDIENCE,
  goodClaims,
  HS256_SECRET,
  ISSUER,
  NOW_MS,
} from "#test/unit/auth/support/tokens.ts";

export const JWT_RULE: AuthRule = {
  method: "jwt",
  issuer: ISSUER,
  claims: { role: "authenticated" },
  tenant: "claim:org_id",
  profile: "app",
};
export const SCRAM_RULE: AuthRule = {
  method: "scram-sha-256",
  database: "app",
  user: "app",
  profile: "server",
};
export const CLAIMS: Record<string, unknown> = goodClaims({
  role: "authenticated",
  org_id: "acme",
});
export const LOGIN: LoginRequest = {
  transport: "postgres",
  database: "app",
  user: "app",
  isSecure: true,
};

export function createUsers(): UserList {
  const secret = new Secret(formatScramVerifier(verifier));
  const result = UserList.create(
    ["app", "bob"].map((name) => ({ name, secret })),
    fixedBytes(3),
  );
  if (!result.ok) throw new Error(result.problem);
  return result.users;
}

export function policy(rules: readonly AuthRule[]): AuthPolicy {
  return {
    issuers: [
      {
        issuer: ISSUER,
        audiences: [AUDIENCE],
        keys: { kind: "secret", secret: new Secret(HS256_SECRET) },
      },
    ],
    rules,
    users: createUsers(),
    databaseOfProfile: (profile) =>
      new Map([
        ["app", "app"],
        ["server", "app"],
        ["reports", "reports"],
      ]).get(profile),
    defaultTenant: (profile) => `tenant of ${profile}`,
  };
}

export function createAuthenticator(
  rules: readonly AuthRule[],
  changes: Partial<AuthPolicy> = {},
  issuer: FakeIssuer = new FakeIssuer([]),
): Authenticator {
  return new Authenticator({
    ...policy(rules),
    ...changes,
    nowMs: () => NOW_MS,
    randomBytes: fixedBytes(2),
    fetch: issuer.fetch,
  });
}

export function failureOf(result: AuthResult): AuthFailure {
  if (result.ok) throw new Error("let in");
  return result.failure;
}
