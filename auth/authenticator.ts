// The room's front door: which method a login gets, and whether a password, a proof or a token is good.
import type {
  AuthFailure,
  AuthFailureReason,
  AuthMethod,
  AuthResult,
  Identity,
} from "./identity.ts";
import { passwordFailure } from "./identity.ts";
import { createIssuer } from "./jwt/issuer.ts";
import type { IssuerConfig } from "./jwt/issuer.ts";
import { RemoteKeySource } from "./jwt/key-source.ts";
import type { FetchKeys, KeySource } from "./jwt/key-source.ts";
import { hasTokenForm, TokenVerifier } from "./jwt/token-verifier.ts";
import type { Issuer } from "./jwt/token-verifier.ts";
import { PasswordCheck } from "./passwords/password-check.ts";
import type { UserList } from "./passwords/user-list.ts";
import { findRuleProblem, resolveTenant, ruleForToken, rulesForLogin } from "./rules.ts";
import type { AuthRule, LoginTarget, TokenTarget } from "./rules.ts";
import type { RandomBytes } from "./scram/messages.ts";
import { mockScramVerifier } from "./scram/mock-verifier.ts";
import { ScramServerExchange } from "./scram/server-exchange.ts";
import type { ScramVerifier } from "./scram/verifier.ts";
import type { Secret } from "./secret.ts";

/** HMAC-SHA-256 keys as long as the hash. */
const PROCESS_KEY_BYTES = 32;

/** Who may log in, and how. Replaced as a whole by `reload`. */
export interface AuthPolicy {
  readonly issuers: readonly IssuerConfig[];
  readonly rules: readonly AuthRule[];
  readonly users: UserList;
  /** The database that a startup profile belongs to; undefined for an unknown profile. */
  readonly databaseOfProfile: (profile: string) => string | undefined;
  readonly defaultTenant: (profile: string) => string;
}

export interface AuthenticatorOptions extends AuthPolicy {
  /** Wall clock. */
  readonly nowMs: () => number;
  readonly randomBytes: RandomBytes;
  readonly fetch: FetchKeys;
}

/** A client that has named user and database. */
export interface LoginRequest extends LoginTarget {
  /** The link counts as TLS: nobody on the way can read a password. */
  readonly isSecure: boolean;
  /** For clients that send their password unasked and in the clear, as on WebSocket /v2. */
  readonly cleartextOnly?: boolean | undefined;
}

export type WireMethod =
  | { readonly kind: "scram-sha-256" }
  | { readonly kind: "cleartext" }
  | { readonly kind: "refuse"; readonly failure: AuthFailure };

/** A policy that cannot be put in force. The message is one line and holds no secret. */
export class AuthConfigurationError extends Error {
  override readonly name = "AuthConfigurationError";
}

interface Snapshot extends AuthPolicy {
  readonly tokens: TokenVerifier;
}

export class Authenticator {
  readonly #nowMs: () => number;
  readonly #randomBytes: RandomBytes;
  readonly #fetch: FetchKeys;
  readonly #mockKey: Uint8Array;
  readonly #passwords: PasswordCheck;
  /** By URL. They outlive a reload, or a reload during an issuer's outage would lose its keys. */
  #remoteSources: ReadonlyMap<string, KeySource> = new Map();
  /** Each step reads this once, so that a reload never mixes two policies within one step. */
  #snapshot: Snapshot;

  /** @throws AuthConfigurationError */
  constructor(options: AuthenticatorOptions) {
    this.#nowMs = options.nowMs;
    this.#randomBytes = options.randomBytes;
    this.#fetch = options.fetch;
    this.#mockKey = options.randomBytes(PROCESS_KEY_BYTES);
    this.#passwords = new PasswordCheck({ processKey: options.randomBytes(PROCESS_KEY_BYTES) });
    this.#snapshot = this.#createSnapshot(options);
  }

  /**
   * Puts another policy in force and forgets what was verified under the old one.
   * @throws AuthConfigurationError and then the old policy stays.
   */
  reload(policy: AuthPolicy): void {
    this.#snapshot = this.#createSnapshot(policy);
    this.#passwords.clear();
  }

  /**
   * How to ask this client for its secret. A client that no rule knows gets SCRAM like a known one
   * and fails there, so that user names do not leak.
   */
  wireMethod(request: LoginRequest): WireMethod {
    const { rules, databaseOfProfile } = this.#snapshot;
    let mayUseToken = false;
    for (const rule of rulesForLogin(rules, request, databaseOfProfile)) {
      if (rule.method === "reject") return { kind: "refuse", failure: rejected(request) };
      if (rule.method === "scram-sha-256" && request.cleartextOnly !== true) {
        return { kind: "scram-sha-256" };
      }
      if (request.isSecure) return { kind: "cleartext" };
      // A token cannot be sent over this link, so a later rule may still offer SCRAM.
      if (rule.method !== "jwt") return { kind: "refuse", failure: insecure() };
      mayUseToken = true;
    }
    if (request.cleartextOnly === true && request.isSecure) return { kind: "cleartext" };
    const needsTls = mayUseToken || request.cleartextOnly === true;
    return needsTls ? { kind: "refuse", failure: insecure() } : { kind: "scram-sha-256" };
  }

  /** The exchange for a client that was answered "scram-sha-256". */
  scramExchange(request: LoginRequest): ScramServerExchange {
    const snapshot = this.#snapshot;
    const { user } = request;
    const rule = passwordRule(snapshot, request);
    const isAllowed = rule?.method === "scram-sha-256";
    const isKnown = isAllowed && snapshot.users.has(user);
    const outcome: AuthResult = isKnown
      ? identify(snapshot, rule, "scram-sha-256", { subject: user, claims: {} })
      : refuse(passwordFailure(user, isAllowed ? "unknown_user" : "no_rule"));
    return new ScramServerExchange({
      user,
      verifier: async () =>
        isKnown ? this.#verifierOf(snapshot, user) : this.#mockVerifier(snapshot, user),
      outcome,
      randomBytes: this.#randomBytes,
    });
  }

  /**
   * Checks a password that came in the clear. One that has the form of a JWT is taken as a token
   * wherever a jwt rule may apply. An unknown user costs as much as a wrong password.
   */
  async checkPassword(request: LoginRequest, password: Secret): Promise<AuthResult> {
    if (!request.isSecure) return refuse(insecure());
    const snapshot = this.#snapshot;
    const { user } = request;
    const rules = rulesForLogin(snapshot.rules, request, snapshot.databaseOfProfile);
    if (rules.some((rule) => rule.method === "jwt") && hasTokenForm(password.reveal())) {
      return this.#checkToken(snapshot, request, password);
    }
    const rule = passwordRule(snapshot, request);
    if (rule?.method === "reject") return refuse(rejected(request));

    const verifier = await this.#verifierOf(snapshot, user);
    const result = await this.#passwords.check(user, verifier, password);
    if (result === "busy") {
      return refuse({
        sqlState: "53300",
        reason: "too_many_checks",
        clientMessage: "too many password checks at the same time, try again",
      });
    }
    if (rule === undefined) return refuse(passwordFailure(user, "no_rule"));
    if (!snapshot.users.has(user)) return refuse(passwordFailure(user, "unknown_user"));
    if (result === "wrong") return refuse(passwordFailure(user, "wrong_password"));
    return identify(snapshot, rule, "password", { subject: user, claims: {} });
  }

  /** Checks a token. A database, if the client named one, must be that of the matched profile. */
  checkJwt(request: TokenTarget, token: Secret): Promise<AuthResult> {
    return this.#checkToken(this.#snapshot, request, token);
  }

  async #checkToken(snapshot: Snapshot, target: TokenTarget, secret: Secret): Promise<AuthResult> {
    const verified = await snapshot.tokens.verify(secret);
    if (!verified.ok) return verified;
    const { token } = verified;
    const rule = ruleForToken(snapshot.rules, target, token, snapshot.databaseOfProfile);
    if (rule?.profile === undefined || rule.method === "reject") {
      const reason = rule === undefined ? "no_rule" : "rejected_by_rule";
      return refuse(failure28000(reason, "no rule accepts this JWT"));
    }
    const database = snapshot.databaseOfProfile(rule.profile);
    if (target.database !== undefined && target.database !== database) {
      const message = `this JWT gives no access to database "${target.database}"`;
      return refuse(failure28000("token_database", message));
    }
    return identify(snapshot, rule, "jwt", token);
  }

  async #verifierOf(snapshot: Snapshot, user: string): Promise<ScramVerifier> {
    return (await snapshot.users.verifier(user)) ?? this.#mockVerifier(snapshot, user);
  }

  #mockVerifier(snapshot: Snapshot, user: string): ScramVerifier {
    return mockScramVerifier(this.#mockKey, user, snapshot.users.shapes);
  }

  #createSnapshot(policy: AuthPolicy): Snapshot {
    const { rules, users, databaseOfProfile, defaultTenant } = policy;
    for (const [index, rule] of rules.entries()) {
      const problem = findRuleProblem(rule, databaseOfProfile);
      if (problem !== undefined) {
        throw new AuthConfigurationError(`auth rule ${index + 1} ${problem}`);
      }
    }
    const sources = new Map<string, KeySource>();
    const issuers = new Map<string, Issuer>();
    for (const config of policy.issuers) {
      const result = createIssuer(config, (url) => {
        const source = sources.get(url) ?? this.#remoteSources.get(url) ?? this.#createSource(url);
        sources.set(url, source);
        return source;
      });
      if (!result.ok) throw new AuthConfigurationError(result.problem);
      if (issuers.has(config.issuer)) {
        throw new AuthConfigurationError(`issuer "${config.issuer}" is listed twice`);
      }
      issuers.set(config.issuer, result.issuer);
    }
    for (const [index, { issuer }] of rules.entries()) {
      if (issuer === undefined || issuers.has(issuer)) continue;
      throw new AuthConfigurationError(`auth rule ${index + 1} names an unknown issuer`);
    }
    this.#remoteSources = sources;
    const tokens = new TokenVerifier({ issuers: [...issuers.values()], nowMs: this.#nowMs });
    return { issuers: policy.issuers, rules, users, databaseOfProfile, defaultTenant, tokens };
  }

  #createSource(url: string): KeySource {
    return new RemoteKeySource({ url, fetch: this.#fetch, nowMs: this.#nowMs });
  }
}

/** The first rule that can decide about a login without a token. */
function passwordRule(snapshot: Snapshot, target: LoginTarget): AuthRule | undefined {
  const rules = rulesForLogin(snapshot.rules, target, snapshot.databaseOfProfile);
  return rules.find((rule) => rule.method !== "jwt");
}

function identify(
  snapshot: Snapshot,
  rule: AuthRule,
  method: AuthMethod,
  who: Pick<Identity, "subject" | "claims"> & { readonly expiresAtMs?: number },
): AuthResult {
  const { profile } = rule;
  if (profile === undefined) return refuse(failure28000("no_rule", "no rule accepts this login"));
  const tenant = resolveTenant(rule, who.claims, snapshot.defaultTenant(profile));
  if (!tenant.ok) return tenant;
  const { subject, claims, expiresAtMs } = who;
  const identity = { subject, tenant: tenant.tenant, method, claims, profile, expiresAtMs };
  return { ok: true, identity };
}

function rejected({ user, database }: LoginTarget): AuthFailure {
  const message = `connection is rejected for user "${user}", database "${database}"`;
  return failure28000("rejected_by_rule", message);
}

function insecure(): AuthFailure {
  return failure28000("insecure_transport", "password or JWT authentication requires TLS");
}

function failure28000(reason: AuthFailureReason, clientMessage: string): AuthFailure {
  return { sqlState: "28000", reason, clientMessage };
}

function refuse(failure: AuthFailure): AuthResult {
  return { ok: false, failure };
}
