// Ordered rules in the manner of pg_hba.conf: the first that matches decides, no match is refused. Pure.
import type { AuthFailure } from "./identity.ts";
import { isPrintable } from "./jwt/claims.ts";

export type AuthTransport = "postgres" | "http" | "websocket";
export type RuleMethod = "jwt" | "scram-sha-256" | "password" | "reject";
export type ClaimValue = string | number | boolean;

/** A condition that is left out matches everything. */
export interface AuthRule {
  readonly method: RuleMethod;
  readonly transport?: AuthTransport | undefined;
  /** For a token without a requested database: the database of the rule's profile. */
  readonly database?: string | undefined;
  /** The login name. A token that came without one does not match a rule that wants one. */
  readonly user?: string | undefined;
  readonly issuer?: string | undefined;
  /** Each must be equal to the token's claim, or be in it if the claim is an array. */
  readonly claims?: Readonly<Record<string, ClaimValue>> | undefined;
  /** `claim:NAME` or the tenant itself. Default: the name of the profile's database. */
  readonly tenant?: string | undefined;
  /** Required unless the method is "reject". */
  readonly profile?: string | undefined;
}

/** What a client said before it proved anything. */
export interface LoginTarget {
  readonly transport: AuthTransport;
  readonly database: string;
  readonly user: string;
}

/** What came with a token; database and user are only there if the client named them. */
export interface TokenTarget {
  readonly transport: AuthTransport;
  readonly database?: string | undefined;
  readonly user?: string | undefined;
}

export interface TokenFacts {
  readonly issuer: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Tenant names are ids, and label values in metrics. */
export const TENANT_LENGTH_MAX = 256;

const CLAIM_PREFIX = "claim:";

/** The rules that can apply to a login by this client, in order. Claims are not known yet. */
export function rulesForLogin(
  rules: readonly AuthRule[],
  target: LoginTarget,
  databaseOfProfile: (profile: string) => string | undefined,
): readonly AuthRule[] {
  return rules.filter((rule) => {
    if (!matches(rule.transport, target.transport) || !matches(rule.user, target.user)) {
      return false;
    }
    if (!matches(rule.database, target.database)) return false;
    // A reject rule about tokens says nothing about a login without one.
    if (rule.method === "reject") return rule.issuer === undefined && rule.claims === undefined;
    if (rule.method !== "jwt" || rule.profile === undefined) return true;
    return databaseOfProfile(rule.profile) === target.database;
  });
}

/** The first rule that matches a verified token: a jwt rule or a reject rule. */
export function ruleForToken(
  rules: readonly AuthRule[],
  target: TokenTarget,
  token: TokenFacts,
  databaseOfProfile: (profile: string) => string | undefined,
): AuthRule | undefined {
  return rules.find((rule) => {
    if (rule.method !== "jwt" && rule.method !== "reject") return false;
    const profileDatabase =
      rule.profile === undefined ? undefined : databaseOfProfile(rule.profile);
    return (
      matches(rule.transport, target.transport) &&
      matches(rule.user, target.user) &&
      matches(rule.database, target.database ?? profileDatabase) &&
      matches(rule.issuer, token.issuer) &&
      hasClaims(token.claims, rule.claims ?? {})
    );
  });
}

/** The tenant by rule, or a refusal if it is to come from a claim that cannot be a name. */
export function resolveTenant(
  rule: AuthRule,
  claims: Readonly<Record<string, unknown>>,
  defaultTenant: string,
):
  | { readonly ok: true; readonly tenant: string }
  | { readonly ok: false; readonly failure: AuthFailure } {
  const { tenant } = rule;
  if (tenant === undefined) return { ok: true, tenant: defaultTenant };
  if (!tenant.startsWith(CLAIM_PREFIX)) return { ok: true, tenant };
  const value = ownClaim(claims, tenant.slice(CLAIM_PREFIX.length));
  const text = typeof value === "number" && Number.isFinite(value) ? String(value) : value;
  if (typeof text === "string" && isPrintable(text, TENANT_LENGTH_MAX)) {
    return { ok: true, tenant: text };
  }
  return {
    ok: false,
    failure: {
      sqlState: "28000",
      reason: "tenant_claim",
      clientMessage: "the identity names no valid tenant",
    },
  };
}

/** What is wrong with a rule as configured, or undefined. */
export function findRuleProblem(
  rule: AuthRule,
  databaseOfProfile: (profile: string) => string | undefined,
): string | undefined {
  const { method, profile, tenant } = rule;
  if (method !== "reject") {
    if (profile === undefined) return "has no profile";
    if (databaseOfProfile(profile) === undefined) return `names an unknown profile "${profile}"`;
  }
  const isAboutTokens = rule.issuer !== undefined || rule.claims !== undefined;
  const takesPassword = method === "scram-sha-256" || method === "password";
  if (takesPassword && isAboutTokens) return `has token conditions, but its method is ${method}`;
  if (tenant === "" || tenant === CLAIM_PREFIX) return "has an empty tenant";
  if (takesPassword && tenant?.startsWith(CLAIM_PREFIX) === true) {
    return `takes its tenant from a claim, but its method is ${method}`;
  }
  return undefined;
}

function matches(wanted: string | undefined, actual: string | undefined): boolean {
  return wanted === undefined || wanted === actual;
}

function hasClaims(
  claims: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, ClaimValue>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => {
    const claim = ownClaim(claims, name);
    return Array.isArray(claim) ? claim.includes(value) : claim === value;
  });
}

/** Own members only: a claim called like a member of Object.prototype must be in the token itself. */
function ownClaim(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}
