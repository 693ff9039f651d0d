// What a server is asked about itself, in one row, and how the answer is read. Pure.
import { PoolError } from "../errors.ts";
import { normaliseLsn, parseLsn, type WalGeometry } from "./lsn.ts";

export interface ServerIdentity extends WalGeometry {
  readonly systemIdentifier: bigint;
  readonly timeline: number;
  /** server_version_num, as 180004. */
  readonly versionNumber: number;
}

/** One answer; `identity` only if it was asked for. */
export interface ServerReading {
  readonly isInRecovery: boolean;
  /** A replica's replay position, a primary's insert position; 0 while a replica has replayed nothing. */
  readonly lsn: bigint;
  readonly isReplayPaused: boolean;
  /** pg_postmaster_start_time() as this session prints it: only good for being compared. */
  readonly startedAt: string;
  readonly identity: ServerIdentity | undefined;
}

// The recovery flag is a row of FROM, so it is evaluated once: after a promotion pg_last_wal_replay_lsn()
// goes on returning its last value, and only the flag of the same row tells. The functions of the other role
// raise 55000, hence CASE. Everything is qualified, because a function of the same name in a schema of the
// search path would answer in its place.
const SAMPLE_COLUMNS = `state.in_recovery,
  CASE WHEN state.in_recovery THEN pg_catalog.pg_last_wal_replay_lsn()
    ELSE pg_catalog.pg_current_wal_insert_lsn() END,
  CASE WHEN state.in_recovery THEN pg_catalog.pg_get_wal_replay_pause_state() END,
  pg_catalog.pg_postmaster_start_time()`;
const FROM_STATE = "FROM pg_catalog.pg_is_in_recovery() AS state(in_recovery)";

/** One row, readable with no rights at all. */
export const SAMPLE_QUERY = `SELECT ${SAMPLE_COLUMNS} ${FROM_STATE}`;

// A replica's timeline: the control file's is that of the last restartpoint, received_tli is newer but NULL
// without pg_read_all_stats. The newest of them is a timeline that the server follows, and a timeline that
// it does not know yet only keeps it out of routing.
export const IDENTITY_QUERY = `SELECT ${SAMPLE_COLUMNS},
  (SELECT system_identifier FROM pg_catalog.pg_control_system()),
  CASE WHEN state.in_recovery THEN GREATEST(
    (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()),
    (SELECT min_recovery_end_timeline FROM pg_catalog.pg_control_recovery()),
    (SELECT received_tli FROM pg_catalog.pg_stat_wal_receiver)) END,
  CASE WHEN state.in_recovery THEN NULL
    ELSE pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()) END,
  pg_catalog.current_setting('wal_block_size'),
  pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')),
  pg_catalog.current_setting('server_version_num')
  ${FROM_STATE}`;

const SAMPLE_WIDTH = 4;
const IDENTITY_WIDTH = 10;

/** A WAL file's name begins with the timeline, eight hexadecimal digits. */
const WAL_FILE_NAME = /^([0-9A-F]{8})[0-9A-F]{16}$/;
const INTEGER = /^-?\d{1,20}$/;

/** Reads the one row of SAMPLE_QUERY or IDENTITY_QUERY. Throws PoolError ERR_SERVER_PROTOCOL. */
export function parseServerReading(
  rows: readonly (readonly (string | null)[])[],
  withIdentity: boolean,
): ServerReading {
  const [row] = rows;
  const width = withIdentity ? IDENTITY_WIDTH : SAMPLE_WIDTH;
  if (rows.length !== 1 || row?.length !== width) throw unreadable("row count or width");
  const [flag, lsnText, pauseState, startedAt] = row;
  if (flag !== "t" && flag !== "f") throw unreadable("recovery flag");
  const isInRecovery = flag === "t";
  if (typeof startedAt !== "string") throw unreadable("start time");

  const isReplayUnknown = isInRecovery && lsnText === null;
  const lsn = isReplayUnknown ? 0n : parseLsn(lsnText ?? "");
  if (lsn === undefined) throw unreadable("position");
  const identity = withIdentity ? parseIdentity(row, isInRecovery) : undefined;
  // A pause that was requested but not reached yet counts: replay may stop before any later record.
  const isReplayPaused = isInRecovery && pauseState !== "not paused";
  return { isInRecovery, lsn, isReplayPaused, startedAt, identity };
}

/** A primary's insert position as a token may name it; a replica's replay position as it is. */
export function usableLsn(reading: ServerReading, identity: ServerIdentity): bigint {
  return reading.isInRecovery ? reading.lsn : normaliseLsn(reading.lsn, identity);
}

function parseIdentity(row: readonly (string | null)[], isInRecovery: boolean): ServerIdentity {
  const [systemIdentifier, replicaTimeline, walFile, blockSize, segmentSize, version] =
    row.slice(SAMPLE_WIDTH);
  const geometry = { blockSize: toCount(blockSize), segmentSize: toCount(segmentSize) };
  if (geometry.segmentSize % geometry.blockSize !== 0) throw unreadable("WAL geometry");
  return {
    // The function's type is a signed bigint, the control file's field is not signed.
    systemIdentifier: BigInt.asUintN(64, toInteger(systemIdentifier)),
    timeline: isInRecovery ? toCount(replicaTimeline) : timelineOf(walFile),
    ...geometry,
    versionNumber: toCount(version),
  };
}

function timelineOf(walFile: string | null | undefined): number {
  const digits = WAL_FILE_NAME.exec(walFile ?? "")?.[1];
  if (digits === undefined) throw unreadable("WAL file name");
  return Number.parseInt(digits, 16);
}

function toInteger(text: string | null | undefined): bigint {
  if (typeof text !== "string" || !INTEGER.test(text)) throw unreadable("number");
  return BigInt(text);
}

/** 1 to 2^32 - 1. */
function toCount(text: string | null | undefined): number {
  const value = toInteger(text);
  if (value < 1n || value > 0xffff_ffffn) throw unreadable("number");
  return Number(value);
}

function unreadable(part: string): PoolError {
  return new PoolError(
    "ERR_SERVER_PROTOCOL",
    `server's answer about its replay position is unreadable: ${part}`,
    { sqlState: "08P01" },
  );
}
