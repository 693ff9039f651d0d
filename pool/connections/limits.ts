// How long a backend connection may live, and how often the pool looks.
import type { PooledConnection } from "./pooled-connection.ts";

/**
 * Pause between two sweeps. The timeouts that they enforce are configured in seconds, so a connection
 * outlives one by a second at most, and a sweep only reads two numbers per FREE connection.
 */
export const JANITOR_INTERVAL_MS = 1_000;

/** `server_lifetime`: as in PgBouncer, 0 means that a connection serves once. Times are clock milliseconds. */
export function isPastLifetime(connection: PooledConnection, now: number): boolean {
  return now - connection.createdAt >= connection.profile.serverLifetimeMs;
}

/** `server_idle_timeout`: as in PgBouncer, 0 means never. Times are clock milliseconds. */
export function isPastIdleTimeout(
  connection: PooledConnection,
  freedAt: number,
  now: number,
): boolean {
  const { serverIdleTimeoutMs } = connection.profile;
  return serverIdleTimeoutMs > 0 && now - freedAt >= serverIdleTimeoutMs;
}
