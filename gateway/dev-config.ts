// The walgate.toml of the local cluster: complete, and a fair start for one's own.
import type { Cluster } from "./embedded/cluster.ts";

export interface DevConfigOptions {
  readonly http: number;
  readonly postgres: number;
  readonly issuer: string;
  readonly audience: string;
}

/** Secrets are named by environment variables that `walgate dev` fills in itself. */
export function devConfig(cluster: Cluster, options: DevConfigOptions): string {
  const servers = [cluster.primary, ...cluster.replicas]
    .map(({ name, host, port }) => `  { name = "${name}", address = "${host}:${port}" },\n`)
    .join("");
  return `# Written anew by \`walgate dev\` at every start.

[gateway]
http = "127.0.0.1:${options.http}"
postgres = "127.0.0.1:${options.postgres}"
shutdown_timeout = 5
log_level = "warning"

[http]
allowed_origins = ["*"]

[tokens]
keys = [{ secret_env = "WALGATE_TOKEN_KEY" }]

[databases.${cluster.database}]
servers = [
${servers}]
monitor_user = "walgate_monitor"
monitor_password_env = "WALGATE_MONITOR_PASSWORD"
sslmode = "disable"

# For our own servers: SQL of programs that we trust.
[profiles.server]
database = "${cluster.database}"
user = "app"
password_env = "WALGATE_APP_PASSWORD"
sql = "trusted"

# For end users, who may send any SQL.
[profiles.app]
database = "${cluster.database}"
user = "app_user"
password_env = "WALGATE_APP_USER_PASSWORD"
parameters = { statement_timeout = "5s" }
sql = "untrusted"

${logins(options)}`;
}

/** Two users by password, and two roles by JWT. */
function logins(options: DevConfigOptions): string {
  return `[[auth.users]]
name = "app"
secret_env = "WALGATE_APP_PASSWORD"

[[auth.users]]
name = "app_user"
secret_env = "WALGATE_APP_USER_PASSWORD"

[[auth.jwt]]
issuer = "${options.issuer}"
audience = "${options.audience}"
secret_env = "WALGATE_JWT_SECRET"

[[auth.rules]]
method = "jwt"
issuer = "${options.issuer}"
claims = { role = "service" }
profile = "server"

[[auth.rules]]
method = "jwt"
issuer = "${options.issuer}"
claims = { role = "authenticated" }
profile = "app"

[[auth.rules]]
method = "scram-sha-256"
user = "app"
profile = "server"

[[auth.rules]]
method = "scram-sha-256"
user = "app_user"
profile = "app"
`;
}
