// What every door works with, built once by the composition: who may come in, as whom they go on, and the pool behind.
import type { Authenticator } from "#auth/authenticator.ts";
import type { Identity } from "#auth/identity.ts";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import type { TokenCodec } from "#pool/consistency/token.ts";
import type { DatabaseCluster } from "#pool/routing/database-cluster.ts";
import type { Greetings } from "#pool/session/greeting.ts";
import type { RelayEnvironment, RelayIdentity } from "#pool/session/relay-environment.ts";
import type { ParameterSet } from "#pool/session/startup-parameters.ts";
import type { Config } from "../config/schema.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { CancelRegistry } from "./cancel-registry.ts";
import type { ClientCensus } from "./client-census.ts";
import type { ClientSession } from "./client-session.ts";
import type { RepeatedTexts } from "./repeated-texts.ts";

export interface GatewayContext {
  readonly config: Config;
  readonly log: Logger;
  readonly authenticator: Authenticator;
  readonly environment: RelayEnvironment;
  readonly greetings: Greetings;
  readonly tokens: TokenCodec;
  readonly cancels: CancelRegistry;
  readonly clients: ClientCensus;
  /** Those of the wire and WebSocket doors. */
  readonly sessions: Set<ClientSession>;
  /** Which queries of HTTP requests are worth preparing. */
  readonly repeatedTexts: RepeatedTexts;
  /** By profile name. */
  readonly profiles: ReadonlyMap<string, StartupProfile>;
  /** By the database's configured name. */
  readonly clusters: ReadonlyMap<string, DatabaseCluster>;
}

/** One for each profile, since pools are found by the profile object. It keeps name and generation, so connections are shared. */
const primaryOnlyProfiles = new WeakMap<StartupProfile, StartupProfile>();

/** The same profile, with every read at the primary. */
export function primaryOnly(profile: StartupProfile): StartupProfile {
  let copy = primaryOnlyProfiles.get(profile);
  if (copy === undefined) {
    copy = { ...profile, consistency: "primary" };
    primaryOnlyProfiles.set(profile, copy);
  }
  return copy;
}

/** A standby refuses every statement of a serializable transaction (0A000), and this setting makes each one such. */
function isSerializable(profile: StartupProfile, parameters: ParameterSet): boolean {
  const name = "default_transaction_isolation";
  const level = parameters.entries.get(name) ?? profile.parameters[name];
  return level?.toLowerCase() === "serializable";
}

export interface ResolvedIdentity {
  readonly profile: StartupProfile;
  readonly relay: RelayIdentity;
  readonly tenant: string;
}

/** The profile an identity was mapped to, as a relay needs it. The rules were checked against the profiles at start. */
export function resolveIdentity(
  context: GatewayContext,
  identity: Identity,
  parameters: ParameterSet,
): ResolvedIdentity {
  const configured = context.profiles.get(identity.profile);
  const profile =
    configured !== undefined && isSerializable(configured, parameters)
      ? primaryOnly(configured)
      : configured;
  const cluster = profile === undefined ? undefined : context.clusters.get(profile.database);
  if (profile === undefined || cluster === undefined) {
    throw new Error(`a rule leads to the profile ${identity.profile}, which is not there`);
  }
  // A subject is unique within its issuer only.
  const principal = profile.isTrusted
    ? ""
    : JSON.stringify([
        identity.method,
        identity.claims["iss"] ?? null,
        identity.tenant,
        identity.subject,
      ]);
  return {
    profile,
    relay: { profile, cluster, principal, parameters },
    tenant: identity.tenant,
  };
}
