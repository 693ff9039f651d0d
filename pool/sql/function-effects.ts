// What a call of one of PostgreSQL's own functions can do, judged by its name. Unknown names belong
// to users, and may do anything.
//
// A user's function of the same name is taken for PostgreSQL's if it wins only by a better match of
// its argument types: an error, should it write, is then the standby's (25006).
import { NON_VOLATILE_BUILTINS } from "./builtin-functions.ts";
import type { PinReason } from "./statement-class.ts";
import {
  isLiteralTrue,
  isTreeNode,
  listOf,
  nameParts,
  nodeOf,
  type TreeNode,
} from "./syntax-tree.ts";

/**
 * - `read`: the same result on every server that has replayed the same transactions.
 * - `local`: can't write, but means something else on another server or session.
 * - `any`: may write.
 */
export type FunctionEffect = "read" | "local" | "any";

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Marked stable in the catalog, but they assign a transaction id, which a standby can't. */
const WRITING_DESPITE_STABLE: ReadonlySet<string> = new Set(
  words("pg_current_xact_id txid_current"),
);

/** Not volatile, and yet about one server, one session or one server's statistics. */
const LOCAL_NON_VOLATILE: ReadonlySet<string> = new Set(
  words(`
    current_setting pg_available_extension_versions pg_available_extensions pg_backend_pid
    pg_conf_load_time pg_config pg_cursor pg_get_replication_slots pg_is_other_temp_schema
    pg_listening_channels pg_my_temp_schema pg_numa_available pg_postmaster_start_time
    pg_prepared_statement pg_replication_origin_oid pg_show_all_settings pg_tablespace_location
    pg_trigger_depth pg_walfile_name pg_walfile_name_offset
  `),
);
const LOCAL_PREFIXES = ["inet_client_", "inet_server_", "pg_event_trigger_", "pg_stat_get_"];

/** Volatile for other reasons than effects: random, the clock, or sizes on disk. */
const VOLATILE_READS = words(`
  array_sample array_shuffle clock_timestamp gen_random_uuid pg_database_size pg_indexes_size
  pg_relation_size pg_sleep pg_sleep_for pg_sleep_until pg_table_size pg_tablespace_size
  pg_total_relation_size random random_normal timeofday uuidv4 uuidv7
`);

const LOCAL_VOLATILE = words(`
  currval lastval pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock
  pg_advisory_unlock_all pg_advisory_unlock_shared pg_advisory_xact_lock
  pg_advisory_xact_lock_shared pg_blocking_pids pg_current_wal_flush_lsn
  pg_current_wal_insert_lsn pg_current_wal_lsn pg_is_in_recovery pg_is_wal_replay_paused
  pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_lock_status
  pg_try_advisory_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock
  pg_try_advisory_xact_lock_shared pg_xact_status set_config setseed txid_status
`);

const EFFECTS: ReadonlyMap<string, FunctionEffect> = effectTable();

function effectTable(): Map<string, FunctionEffect> {
  const effects = new Map<string, FunctionEffect>();
  for (const name of NON_VOLATILE_BUILTINS.flatMap(words)) {
    if (WRITING_DESPITE_STABLE.has(name)) continue;
    const isLocal =
      LOCAL_NON_VOLATILE.has(name) || LOCAL_PREFIXES.some((prefix) => name.startsWith(prefix));
    effects.set(name, isLocal ? "local" : "read");
  }
  for (const name of VOLATILE_READS) effects.set(name, "read");
  for (const name of LOCAL_VOLATILE) effects.set(name, "local");
  return effects;
}

/** Functions that change the state of the server session, and those that run SQL text unexamined. */
const PINNING_FUNCTIONS: ReadonlyMap<string, PinReason> = new Map(
  (
    [
      ["set_config", "set_config"],
      // SET SEED in the form of a function.
      ["set", "setseed"],
      // A base backup, and a replication origin, belong to the session that started them.
      ["set", "pg_backup_start pg_backup_stop"],
      ["set", "pg_replication_origin_session_reset pg_replication_origin_session_setup"],
      ["advisory_lock", "pg_advisory_lock pg_advisory_lock_shared"],
      ["advisory_lock", "pg_try_advisory_lock pg_try_advisory_lock_shared"],
      ["advisory_lock", "pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared"],
      ["sequence_session", "currval lastval"],
      ["do_block", "query_to_xml query_to_xml_and_xmlschema query_to_xmlschema"],
      ["do_block", "ts_rewrite ts_stat"],
    ] as const
  ).flatMap(([reason, names]) => words(names).map((name): [string, PinReason] => [name, reason])),
);

/** True if a call of this name can pin: for scans that see no arguments. */
export function mayPin(name: string): boolean {
  return PINNING_FUNCTIONS.has(name);
}

/** Effect and pin of one `FuncCall` node. */
export function effectOfCall(call: TreeNode): {
  readonly effect: FunctionEffect;
  readonly pin: PinReason | undefined;
} {
  const name = builtinName(listOf(call, "funcname"));
  if (name === undefined) return { effect: "any", pin: undefined };
  const reason = PINNING_FUNCTIONS.get(name);
  const isHarmless = reason !== undefined && hasHarmlessArguments(name, listOf(call, "args"));
  return { effect: EFFECTS.get(name) ?? "any", pin: isHarmless ? undefined : reason };
}

/** The name if it can be one of PostgreSQL's functions, that is unqualified or in pg_catalog. */
function builtinName(parts: readonly unknown[]): string | undefined {
  const names = nameParts(parts);
  if (names.length === 1) return names[0];
  return names.length === 2 && names[0] === "pg_catalog" ? names[1] : undefined;
}

/** set_config(…, true) ends with its transaction; ts_rewrite runs SQL text only with two arguments. */
function hasHarmlessArguments(name: string, args: readonly unknown[]): boolean {
  if (name === "ts_rewrite") return args.length === 3;
  if (name !== "set_config" || args.length !== 3) return false;
  return args.some((argument, index) => {
    const named = isTreeNode(argument) ? nodeOf(argument, "NamedArgExpr") : undefined;
    if (named === undefined) return index === 2 && isLiteralTrue(argument);
    return named["name"] === "is_local" && isLiteralTrue(named["arg"]);
  });
}
