// Turns a configured issuer into one that the token verifier can use, or says what is wrong with it.
import type { Secret } from "../secret.ts";
import { KeySet } from "./key-set.ts";
import { FixedKeySource, findJwksUrlProblem } from "./key-source.ts";
import type { KeySource } from "./key-source.ts";
import { HS256_SECRET_BYTES_MIN } from "./token-verifier.ts";
import type { Issuer, IssuerKeys, JwtAlgorithm } from "./token-verifier.ts";

export interface IssuerConfig {
  readonly issuer: string;
  /** At least one. */
  readonly audiences: readonly string[];
  readonly keys:
    | { readonly kind: "secret"; readonly secret: Secret }
    /** `jwks` is the parsed JSON document. */
    | { readonly kind: "inline"; readonly jwks: unknown }
    | { readonly kind: "remote"; readonly url: string };
  readonly algorithms?: readonly JwtAlgorithm[] | undefined;
  readonly lifetimeMaxMs?: number | undefined;
}

export type IssuerResult =
  { readonly ok: true; readonly issuer: Issuer } | { readonly ok: false; readonly problem: string };

/** `createRemoteSource` is only called with a URL that is acceptable. */
export function createIssuer(
  config: IssuerConfig,
  createRemoteSource: (url: string) => KeySource,
): IssuerResult {
  const refuse = (problem: string): IssuerResult => ({
    ok: false,
    problem: `issuer "${config.issuer}" ${problem}`,
  });
  if (config.issuer === "") return refuse("has an empty name");
  if (config.audiences.length === 0 || config.audiences.includes("")) {
    return refuse("needs at least one audience, none of them empty");
  }
  const isSecret = config.keys.kind === "secret";
  if (config.algorithms?.some((algorithm) => (algorithm === "HS256") !== isSecret) === true) {
    return refuse("lists an algorithm that does not fit its keys");
  }
  if (config.algorithms?.length === 0) return refuse("lists no algorithm");
  const keys = readKeys(config, createRemoteSource);
  if (typeof keys === "string") return refuse(keys);
  return {
    ok: true,
    issuer: {
      issuer: config.issuer,
      audiences: config.audiences,
      keys,
      algorithms: config.algorithms,
      lifetimeMaxMs: config.lifetimeMaxMs,
    },
  };
}

/** A text is the problem. */
function readKeys(
  { keys }: IssuerConfig,
  createRemoteSource: (url: string) => KeySource,
): IssuerKeys | string {
  if (keys.kind === "secret") {
    const isLongEnough = keys.secret.revealBytes().byteLength >= HS256_SECRET_BYTES_MIN;
    return isLongEnough ? keys : `needs a secret of at least ${HS256_SECRET_BYTES_MIN} bytes`;
  }
  if (keys.kind === "inline") {
    const parsed = KeySet.parse(keys.jwks);
    return parsed.ok
      ? { kind: "public", source: new FixedKeySource(parsed.keys) }
      : `has a key set that ${parsed.problem}`;
  }
  const problem = findJwksUrlProblem(keys.url);
  return problem === undefined
    ? { kind: "public", source: createRemoteSource(keys.url) }
    : `has a key set URL that ${problem}`;
}
