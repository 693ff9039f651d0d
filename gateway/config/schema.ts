// The one description of walgate.toml, and the type of the configuration that the program works with.
import type { Secret } from "#auth/secret.ts";
import { authSection } from "./sections/auth-section.ts";
import { databasesSection, profilesSection } from "./sections/databases-section.ts";
import { gatewaySection, httpSection, tokensSection } from "./sections/gateway-section.ts";
import { poolSection } from "./sections/pool-section.ts";
import { type Address, type Decoded, table } from "./values.ts";

/** Defaults, validation and docs/configuration.md all come from here. */
export const configSchema = table(
  {
    gateway: gatewaySection,
    http: httpSection,
    tokens: tokensSection,
    pool: poolSection,
    databases: databasesSection,
    profiles: profilesSection,
    auth: authSection,
  },
  { description: "walgate.toml" },
);

/** The file as written: with defaults, sizes in bytes and addresses parsed, but references not followed. */
export type ConfigFile = Decoded<typeof configSchema>;

type GatewayFile = ConfigFile["gateway"];
type DatabaseFile = ConfigFile["databases"][string];
type ProfileFile = ConfigFile["profiles"][string];
type JwtFile = ConfigFile["auth"]["jwt"][number];

/** Every key of [pool]. Durations in seconds. */
export type ResolvedPoolSettings = ConfigFile["pool"];

/** Those of them that a database or a profile may set for itself. */
export type PoolOverrides = Partial<Omit<ResolvedPoolSettings, "server_login_retry">>;

export type GatewayConfig = Omit<GatewayFile, "tls"> & {
  readonly tls?: { readonly certificate: string; readonly private_key: Secret };
};

export interface ServerConfig {
  readonly name: string;
  readonly address: Address;
  readonly weight: number;
}

export type DatabaseConfig = Omit<
  DatabaseFile,
  "dbname" | "servers" | "monitor_password_env" | "monitor_password_file" | "sslrootcert"
> & {
  readonly dbname: string;
  readonly servers: readonly ServerConfig[];
  readonly monitor_password?: Secret;
  /** PEM text of the file. */
  readonly sslrootcert?: string;
};

export type ProfileConfig = Omit<ProfileFile, "password" | "password_env" | "password_file"> & {
  readonly password?: Secret;
};

export type JwtKeys =
  | { readonly kind: "secret"; readonly secret: Secret }
  | { readonly kind: "jwks"; readonly jwks: unknown }
  | { readonly kind: "jwks_url"; readonly url: string };

export interface JwtConfig {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly keys: JwtKeys;
  readonly algorithms?: NonNullable<JwtFile["algorithms"]>;
}

export type AuthRuleConfig = ConfigFile["auth"]["rules"][number];

export interface UserConfig {
  readonly name: string;
  /** A SCRAM verifier or a password. */
  readonly secret: Secret;
}

/**
 * walgate.toml after checking. Keys keep their names of the file; durations are in seconds, sizes in bytes.
 * Where the file names an environment variable or a file, its content stands here: `password_env` and
 * `password_file` become `password`.
 */
export interface Config {
  readonly gateway: GatewayConfig;
  readonly http: ConfigFile["http"];
  readonly tokens: {
    /** Never empty: the first signs, all verify. Each has at least 32 bytes. */
    readonly keys: readonly [Secret, ...Secret[]];
    readonly max_wait: number;
  };
  readonly pool: ResolvedPoolSettings;
  readonly databases: Readonly<Record<string, DatabaseConfig>>;
  readonly profiles: Readonly<Record<string, ProfileConfig>>;
  readonly auth: {
    readonly jwt: readonly JwtConfig[];
    readonly rules: readonly AuthRuleConfig[];
    /** Those of the file followed by those of auth_file; no name twice. */
    readonly users: readonly UserConfig[];
  };
}
