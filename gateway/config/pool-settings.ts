// The pool settings of one profile: profile over database over [pool].
import type { Config, PoolOverrides, ResolvedPoolSettings } from "./schema.ts";

/** A key that is absent or undefined overrides nothing. */
function given(overrides: PoolOverrides, pool: ResolvedPoolSettings): PoolOverrides {
  const keys = Object.keys(pool);
  return Object.fromEntries(
    Object.entries(overrides).filter(([key, value]) => keys.includes(key) && value !== undefined),
  );
}

/** @throws TypeError for a profile that the configuration does not have. */
export function poolSettings(config: Config, profileName: string): ResolvedPoolSettings {
  const profile = config.profiles[profileName];
  const database = profile === undefined ? undefined : config.databases[profile.database];
  if (profile === undefined || database === undefined) {
    throw new TypeError(`no profile "${profileName}" in the configuration`);
  }
  const { pool } = config;
  return { ...pool, ...given(database, pool), ...given(profile, pool) };
}
