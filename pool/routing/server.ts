// One configured PostgreSQL server of a database, as router, pool and monitor share it.
import type { HostAddress } from "../transport/socket.ts";

export type SslMode = "disable" | "prefer" | "require" | "verify-ca" | "verify-full";

export interface ServerTls {
  readonly mode: SslMode;
  /** PEM of the certificate authorities to trust instead of the system's. */
  readonly ca: string | undefined;
}

export type ServerRole = "primary" | "replica" | "unknown";

/** Fixed facts from the configuration and live ones; `pool/routing` writes the live ones, everybody reads them. */
export interface Server {
  readonly name: string;
  readonly address: HostAddress;
  readonly weight: number;
  readonly tls: ServerTls;
  /** Found by asking pg_is_in_recovery(); `unknown` while the monitor has no answer. */
  role: ServerRole;
  /** Raised whenever what was known of the server's position stops to count: restart, promotion, lost monitor. */
  epoch: number;
  /** Leases on it now, kept by `pool/connections`: the load that server selection compares. */
  leased: number;
}

/** Who serves, in order of preference: the first that has room does. */
export interface Route {
  readonly role: "primary" | "replica";
  readonly servers: readonly Server[];
  readonly reason: RouteReason;
}

export type RouteReason =
  | "write"
  | "pinned"
  | "consistency_primary"
  | "replica"
  | "position_unknown"
  | "no_replica"
  | "wait_timeout"
  | "token_foreign"
  | "token_future";
