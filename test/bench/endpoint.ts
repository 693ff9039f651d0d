// Where a contender listens and how clients log in there.
import type { Cluster } from "#gateway/embedded/cluster.ts";

export interface Endpoint {
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly sslmode?: "disable" | "require";
}

/** What libpq programs read. In the environment, since a command line is shown to everybody. */
export function libpqEnvironment(endpoint: Endpoint): Record<string, string> {
  return {
    PGHOST: "127.0.0.1",
    PGPORT: String(endpoint.port),
    PGUSER: endpoint.user,
    PGPASSWORD: endpoint.password,
    PGDATABASE: "app",
    PGSSLMODE: endpoint.sslmode ?? "disable",
    PGGSSENCMODE: "disable",
  };
}

export function directEndpoint(cluster: Cluster): Endpoint {
  return { port: cluster.primary.port, user: "app", password: cluster.passwords.app };
}
