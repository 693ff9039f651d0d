// What authentication answers: an identity, or a failure that is data and safe to show.

/** How the caller proved who they are. */
export type AuthMethod = "jwt" | "scram-sha-256" | "password";

/** An authenticated caller, already mapped to the startup profile that serves them. */
export interface Identity {
  /**
   * The user's name, or the token's `sub`. A token without `sub` gets a digest of its claims, so
   * that callers with different claims never count as one principal. Unique within one issuer only.
   */
  readonly subject: string;
  /** What limits, read-after-write tokens and batons are bound to. */
  readonly tenant: string;
  readonly method: AuthMethod;
  /** The token's verified claims; empty for the other methods. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Name of the startup profile. */
  readonly profile: string;
  /** End of the token's life in wall-clock milliseconds since 1970; undefined for the others. */
  readonly expiresAtMs: number | undefined;
}

/** Closed set of causes, for counters. */
export type AuthFailureReason =
  | "insecure_transport"
  | "keys_unavailable"
  | "no_rule"
  | "protocol_violation"
  | "rejected_by_rule"
  | "tenant_claim"
  | "token_algorithm"
  | "token_audience"
  | "token_claims"
  | "token_database"
  | "token_expired"
  | "token_issuer"
  | "token_lifetime"
  | "token_malformed"
  | "token_not_yet_valid"
  | "token_signature"
  | "token_too_long"
  | "token_unknown_key"
  | "too_many_checks"
  | "unknown_user"
  | "wrong_password";

/** Why a caller is refused. `clientMessage` may leave the process: it holds no secret. */
export interface AuthFailure {
  readonly sqlState: "28000" | "28P01" | "08P01" | "53300" | "57P03";
  readonly reason: AuthFailureReason;
  readonly clientMessage: string;
}

/** The outcome of an authentication step that came to an end. */
export type AuthResult =
  | { readonly ok: true; readonly identity: Identity }
  | { readonly ok: false; readonly failure: AuthFailure };

/** The one answer to a wrong password and to an unknown user, in PostgreSQL's words. */
export function passwordFailure(
  user: string,
  reason: "unknown_user" | "wrong_password" | "no_rule",
): AuthFailure {
  return {
    sqlState: "28P01",
    reason,
    clientMessage: `password authentication failed for user "${user}"`,
  };
}
