// Waits until the replicas have replayed what the primary has written: read-after-write without a sleep.
import { withConnection } from "./admin-sql.ts";
import { ClusterError } from "./cluster-error.ts";
import type { Cluster } from "./cluster.ts";
import { pollUntil } from "./poll-until.ts";

const CAUGHT_UP_TIMEOUT_MS = 30_000;

// The insert position may point behind a page or segment header that no record follows yet, while
// replay ends in front of it: 24 bytes for a page, 40 for the first page of a segment.
const TARGET_SQL = `
  WITH at AS (
    SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS n,
      pg_size_bytes(current_setting('wal_segment_size')) AS segment,
      current_setting('wal_block_size')::numeric AS block)
  SELECT ('0/0'::pg_lsn + CASE
    WHEN n % segment <= 40 THEN n - n % segment
    WHEN n % block <= 24 THEN n - n % block
    ELSE n END)::text AS lsn FROM at`;

/** Waits for each replica to stream and to replay the primary's present insert position. */
export async function caughtUp(cluster: Pick<Cluster, "primary" | "replicas">): Promise<void> {
  const [row] = await cluster.primary.sql(TARGET_SQL);
  const target = row?.["lsn"];
  if (typeof target !== "string") throw new ClusterError("the primary named no position");
  await Promise.all(
    cluster.replicas.map((replica) =>
      withConnection(replica.url("postgres", "postgres"), (sql) =>
        pollUntil(
          async () => {
            const rows: unknown[] = await sql`
              SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'
                AND pg_last_wal_replay_lsn() >= ${target}::pg_lsn`;
            return rows.length > 0;
          },
          CAUGHT_UP_TIMEOUT_MS,
          `${replica.name} to stream and to replay ${target}`,
        ),
      ),
    ),
  );
}
