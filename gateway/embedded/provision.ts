// Gives the primary its roles, database and replication slots; whatever exists already is kept.
import { withConnection } from "./admin-sql.ts";
import type { ClusterCredentials } from "./credentials.ts";

export interface ProvisionInput {
  /** A URL of the superuser for a database by name. */
  readonly urlOf: (database: string) => string;
  readonly database: string;
  readonly slots: readonly string[];
  readonly credentials: ClusterCredentials;
}

/** `app` owns the database and its public schema; `app_user` may use what `app` makes there. */
export async function provision(input: ProvisionInput): Promise<void> {
  const { urlOf, database, slots, credentials } = input;
  const name = quoteIdentifier(database);
  await withConnection(urlOf("postgres"), async (sql) => {
    // A failed statement is logged with its text, and these hold passwords.
    await sql.unsafe("SET log_min_error_statement TO panic");
    for (const role of ["app", "app_user", "walgate_monitor", "replicator"] as const) {
      const present: unknown[] = await sql`SELECT FROM pg_roles WHERE rolname = ${role}`;
      if (present.length > 0) continue;
      const kind = role === "replicator" ? "REPLICATION" : "";
      // The password is base64url, so it cannot end the literal.
      await sql.unsafe(`CREATE ROLE ${role} LOGIN ${kind} PASSWORD '${credentials[role]}'`);
    }
    // A replica shows the timeline it receives to those who may read statistics only.
    await sql.unsafe("GRANT pg_read_all_stats TO walgate_monitor");
    for (const slot of slots) {
      await sql`SELECT pg_create_physical_replication_slot(${slot}, true)
        WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = ${slot})`;
    }
    const present: unknown[] = await sql`SELECT FROM pg_database WHERE datname = ${database}`;
    if (present.length === 0) await sql.unsafe(`CREATE DATABASE ${name} OWNER app`);
  });
  await withConnection(urlOf(database), (sql) =>
    sql
      .unsafe(
        `REVOKE ALL ON DATABASE ${name} FROM PUBLIC;
         GRANT CONNECT ON DATABASE ${name} TO app_user, walgate_monitor;
         ALTER SCHEMA public OWNER TO app;
         REVOKE ALL ON SCHEMA public FROM PUBLIC;
         GRANT USAGE ON SCHEMA public TO app_user;
         ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public
           GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app_user;
         ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA public
           GRANT USAGE ON SEQUENCES TO app_user`,
      )
      .simple(),
  );
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
