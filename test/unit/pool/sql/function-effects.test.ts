// Which of PostgreSQL's functions count as harmless.
import { expect, test } from "bun:test";
import { NON_VOLATILE_BUILTINS } from "#pool/sql/builtin-functions.ts";
import { effectOfCall } from "#pool/sql/function-effects.ts";

const effectOf = (...names: string[]): string =>
  effectOfCall({ funcname: names.map((name) => ({ String: { sval: name } })) }).effect;

test("PostgreSQL's own functions count unqualified and in pg_catalog only", () => {
  expect(effectOf("lower")).toBe("read");
  expect(effectOf("pg_catalog", "lower")).toBe("read");
  expect(effectOf("public", "lower")).toBe("any");
  expect(effectOf("app", "pg_catalog", "lower")).toBe("any");
  expect(effectOf()).toBe("any");
});

/** They succeed on a standby and mean something else there, or fail there, or write elsewhere. */
const NEVER_READ = `
  currval dblink dblink_exec lastval lo_create lo_export lo_import lo_put lo_unlink lowrite nextval
  pg_advisory_lock pg_advisory_unlock pg_advisory_xact_lock pg_backend_pid pg_backup_start
  pg_cancel_backend pg_copy_physical_replication_slot pg_create_logical_replication_slot
  pg_create_physical_replication_slot pg_create_restore_point pg_current_wal_lsn
  pg_current_xact_id pg_drop_replication_slot pg_export_snapshot pg_is_in_recovery
  pg_last_wal_replay_lsn pg_log_standby_snapshot pg_logical_emit_message pg_ls_dir pg_notify
  pg_promote pg_read_binary_file pg_read_file pg_reload_conf pg_replication_origin_create
  pg_rotate_logfile pg_stat_get_activity pg_stat_reset pg_stat_reset_shared pg_switch_wal
  pg_terminate_backend pg_try_advisory_lock pg_wal_replay_pause pg_wal_replay_resume
  query_to_xml cursor_to_xml ts_stat set_config setseed setval txid_current inet_server_addr
  current_setting
`;

test.each(NEVER_READ.trim().split(/\s+/))("%s is never a read", (name) => {
  expect(effectOf(name)).not.toBe("read");
});

test.each(["nextval", "setval", "pg_current_xact_id", "txid_current", "lo_create", "pg_notify"])(
  "%s may write",
  (name) => {
    expect(effectOf(name)).toBe("any");
  },
);

test("the generated list holds well over a thousand single names in order", () => {
  const names = NON_VOLATILE_BUILTINS.flatMap((line) => line.split(" "));

  expect(names.length).toBeGreaterThan(1_500);
  expect(names.every((name) => /^[a-z_][a-z0-9_]*$/.test(name))).toBe(true);
  expect(names).toEqual([...new Set(names)].toSorted());
});
