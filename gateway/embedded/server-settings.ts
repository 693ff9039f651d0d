// The settings of one local server: small, quick, and streaming. Written anew at every start.
import type { ServerName } from "./cluster.ts";

// initdb writes these into the control file. A replica that is given less by its settings than its
// copied control file says stops with "insufficient parameter settings".
export const INITDB_SETTINGS: readonly string[] = [
  "max_connections=200",
  "max_worker_processes=2",
  "max_wal_senders=6",
];

export interface ServerSettingsInput {
  readonly name: ServerName;
  readonly port: number;
  /** Where a replica streams from; undefined for the primary. */
  readonly upstream: { readonly port: number; readonly password: string } | undefined;
  /** The caller's own settings; they win over the ones here. */
  readonly extra: Readonly<Record<string, string>>;
}

const SMALL_AND_QUICK: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  shared_buffers: "32MB",
  io_method: "sync",
  max_parallel_workers: "0",
  max_logical_replication_workers: "0",
  jit: "off",
  // In the data folder, so that a killed server leaves no segment of shared memory behind.
  dynamic_shared_memory_type: "mmap",
  min_wal_size: "32MB",
  max_wal_size: "256MB",
  // For development only: a power cut may lose the data, a killed process does not.
  // synchronous_commit stays on: replicas are sent flushed WAL only, so turning it off delays them.
  fsync: "off",
  full_page_writes: "off",
  wal_level: "replica",
  max_replication_slots: "6",
  // A replica that never comes back must not fill the disk.
  max_slot_wal_keep_size: "512MB",
  hot_standby: "on",
  hot_standby_feedback: "on",
  // The default of 5 s is how long a replica waits that found no primary.
  wal_retrieve_retry_interval: "200ms",
  wal_receiver_status_interval: "1s",
  log_line_prefix: "%m [%p] ",
  log_checkpoints: "off",
};

/** The text of the settings file that postgresql.conf includes. Holds a replica's password. */
export function serverSettings(input: ServerSettingsInput): string {
  const { name, port, upstream, extra } = input;
  const settings: Record<string, string> = {
    ...SMALL_AND_QUICK,
    port: String(port),
    cluster_name: name,
  };
  if (upstream !== undefined) {
    settings["primary_conninfo"] =
      `host=127.0.0.1 port=${upstream.port} user=replicator ` +
      `password=${upstream.password} application_name=${name}`;
    settings["primary_slot_name"] = name;
  }
  return Object.entries({ ...settings, ...extra })
    .map(([key, value]) => `${key} = '${value.replaceAll("'", "''")}'\n`)
    .join("");
}
