// The startup profiles of a configuration, in the pool's units and names.
import type { Secret } from "#auth/secret.ts";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import { poolSettings } from "./config/pool-settings.ts";
import type { Config, DatabaseConfig } from "./config/schema.ts";

export function toProfiles(config: Config): ReadonlyMap<string, StartupProfile> {
  const profiles = new Map<string, StartupProfile>();
  for (const [name, profile] of Object.entries(config.profiles)) {
    const database = config.databases[profile.database];
    if (database === undefined) throw new Error(`profile "${name}" names an unknown database`);
    const settings = poolSettings(config, name);
    profiles.set(name, {
      name,
      generation: 0,
      database: profile.database,
      dbname: database.dbname,
      user: profile.user,
      password: profile.password,
      parameters: profile.parameters,
      isTrusted: profile.sql === "trusted",
      poolMode: settings.pool_mode,
      defaultPoolSize: settings.default_pool_size,
      queryWaitTimeoutMs: settings.query_wait_timeout * 1_000,
      waitQueueMax: settings.max_query_waiters,
      serverLifetimeMs: settings.server_lifetime * 1_000,
      serverIdleTimeoutMs: settings.server_idle_timeout * 1_000,
      serverConnectTimeoutMs: settings.server_connect_timeout * 1_000,
      cancelWaitTimeoutMs: settings.cancel_wait_timeout * 1_000,
      serverResetQuery: settings.server_reset_query,
      maxPreparedStatements: settings.max_prepared_statements,
      consistencyWaitMs: Math.min(database.consistency_wait, config.tokens.max_wait) * 1_000,
      consistency: database.consistency,
    });
  }
  return profiles;
}

export interface MonitorLogin {
  readonly dbname: string;
  readonly user: string;
  readonly password: Secret | undefined;
}

/** `monitor_user`, or else the first trusted profile of the database; undefined when there is neither. */
export function toMonitorLogin(
  name: string,
  database: DatabaseConfig,
  profiles: ReadonlyMap<string, StartupProfile>,
): MonitorLogin | undefined {
  const { dbname } = database;
  if (database.monitor_user !== undefined) {
    return { dbname, user: database.monitor_user, password: database.monitor_password };
  }
  for (const profile of profiles.values()) {
    if (profile.database !== name || !profile.isTrusted) continue;
    return { dbname, user: profile.user, password: profile.password };
  }
  return undefined;
}
