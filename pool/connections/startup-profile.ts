// The startup profile: everything an identity is mapped to. Immutable; a reload makes a new one with the next generation.
import type { Secret } from "#auth/secret.ts";

export type PoolMode = "transaction" | "session" | "statement";

export interface StartupProfile {
  readonly name: string;
  /** Part of the match key: connections of an older generation are never reused. */
  readonly generation: number;
  /** The configured database's name, which clients ask for. */
  readonly database: string;
  /** The name of that database on the server. */
  readonly dbname: string;
  readonly user: string;
  readonly password: Secret | undefined;
  /** Sent in our StartupMessage, so that RESET ALL and DISCARD ALL return to them. */
  readonly parameters: Readonly<Record<string, string>>;
  /** False: the SQL comes from end users, so no statement of ours is named and a change of principal costs DISCARD ALL. */
  readonly isTrusted: boolean;
  readonly poolMode: PoolMode;
  /** Connections per database, user and server, over all match keys. */
  readonly defaultPoolSize: number;
  readonly queryWaitTimeoutMs: number;
  /** Waiters per database and user. */
  readonly waitQueueMax: number;
  readonly serverLifetimeMs: number;
  readonly serverIdleTimeoutMs: number;
  readonly serverConnectTimeoutMs: number;
  readonly cancelWaitTimeoutMs: number;
  /** Statements are split and sent one by one. */
  readonly serverResetQuery: string;
  readonly maxPreparedStatements: number;
  /** How long a read may wait for a replica to reach its token. */
  readonly consistencyWaitMs: number;
  readonly consistency: "session" | "eventual" | "primary";
}
