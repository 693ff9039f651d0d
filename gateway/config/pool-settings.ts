// The pool settings of one profile: profile over database over [pool].
import type { Config, ResolvedPoolSettings } from "./schema.ts";

/** The upper level first; a key that neither has comes from [pool]. */
function merge(
  upper: Partial<ResolvedPoolSettings>,
  lower: Partial<ResolvedPoolSettings>,
  pool: ResolvedPoolSettings,
): ResolvedPoolSettings {
  return {
    pool_mode: upper.pool_mode ?? lower.pool_mode ?? pool.pool_mode,
    default_pool_size: upper.default_pool_size ?? lower.default_pool_size ?? pool.default_pool_size,
    query_wait_timeout:
      upper.query_wait_timeout ?? lower.query_wait_timeout ?? pool.query_wait_timeout,
    max_query_waiters: upper.max_query_waiters ?? lower.max_query_waiters ?? pool.max_query_waiters,
    query_timeout: upper.query_timeout ?? lower.query_timeout ?? pool.query_timeout,
    idle_transaction_timeout:
      upper.idle_transaction_timeout ??
      lower.idle_transaction_timeout ??
      pool.idle_transaction_timeout,
    server_lifetime: upper.server_lifetime ?? lower.server_lifetime ?? pool.server_lifetime,
    server_idle_timeout:
      upper.server_idle_timeout ?? lower.server_idle_timeout ?? pool.server_idle_timeout,
    server_connect_timeout:
      upper.server_connect_timeout ?? lower.server_connect_timeout ?? pool.server_connect_timeout,
    server_login_retry:
      upper.server_login_retry ?? lower.server_login_retry ?? pool.server_login_retry,
    cancel_wait_timeout:
      upper.cancel_wait_timeout ?? lower.cancel_wait_timeout ?? pool.cancel_wait_timeout,
    server_reset_query:
      upper.server_reset_query ?? lower.server_reset_query ?? pool.server_reset_query,
    max_prepared_statements:
      upper.max_prepared_statements ??
      lower.max_prepared_statements ??
      pool.max_prepared_statements,
  };
}

/** @throws TypeError for a profile that the configuration does not have. */
export function poolSettings(config: Config, profileName: string): ResolvedPoolSettings {
  const profile = config.profiles[profileName];
  const database = profile === undefined ? undefined : config.databases[profile.database];
  if (profile === undefined || database === undefined) {
    throw new TypeError(`no profile "${profileName}" in the configuration`);
  }
  return merge(profile, database, config.pool);
}
