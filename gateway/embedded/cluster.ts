// What a local PostgreSQL cluster offers to those who started it.
import type { SqlRow } from "./admin-sql.ts";
import type { ClusterPasswords, ClusterRole } from "./credentials.ts";
import type { StopMode } from "./server-process.ts";

export type ServerName = "primary" | "replica1" | "replica2";

export interface ClusterOptions {
  /** Folder for data, passwords and logs. Default: below the working directory, or for root below /var/tmp. */
  readonly home?: string;
  /** First port to try. Default: random ports that were free. */
  readonly portFrom?: number;
  /** Default 2. */
  readonly replicas?: 0 | 1 | 2;
  /** Default "app". */
  readonly database?: string;
  readonly log?: (line: string) => void;
  /** Settings for every server; they win over the cluster's own. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface ServerNode {
  readonly name: ServerName;
  readonly host: "127.0.0.1";
  readonly port: number;
  /** A connection URL with the role's password; `database` defaults to the cluster's. */
  url(role: ClusterRole, database?: string): string;
  /** Runs SQL as superuser in the cluster's database; the rows of the last statement. */
  sql(text: string): Promise<SqlRow[]>;
}

export interface Cluster extends AsyncDisposable {
  readonly primary: ServerNode;
  readonly replicas: readonly ServerNode[];
  readonly home: string;
  readonly database: string;
  readonly passwords: ClusterPasswords;
  /** Replicas first, then the primary. May be called again; later calls wait for the first. */
  stop(): Promise<void>;
  /** A crash: connections end without a message. */
  kill(name: ServerName): Promise<void>;
  /** Starts a killed or stopped server again, on its old port. */
  start(name: ServerName): Promise<void>;
  /** An ordinary shutdown of one server. */
  stopServer(name: ServerName, mode: StopMode): Promise<void>;
}
