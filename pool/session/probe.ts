// The probe that reads the primary's WAL position behind a commit, and where it stands among a client's messages.
import { Frontend, concatBytes } from "../wire/message-types.ts";
import { encodeParse } from "../wire/frontend-messages.ts";
import { encodeFrame } from "../wire/backend-messages.ts";
import type { ProbeResult, SegmentWriter } from "./segment-writer.ts";
import { Fate } from "../exchange/reply-plan.ts";

const encoder = new TextEncoder();
const PROBE_NAME = encoder.encode("_walgate_lsn");

/**
 * The insert position, for the write and flush positions lag behind asynchronous commits; qualified, for a search_path may put a
 * function of the same name first.
 */
const PROBE_TEXT = "select pg_catalog.pg_current_wal_insert_lsn()";

/** Text, NUL, no parameter types. */
export const PROBE_PARSE_FRAME = encodeParse(
  PROBE_NAME,
  concatBytes([encoder.encode(PROBE_TEXT), new Uint8Array(3)]),
);

/**
 * A named portal: the unnamed one may be the client's. A portal of this name from an earlier probe is gone, as portals end with their
 * transaction; inside an open transaction block a second probe would fail on it, which a probe may.
 */
const PORTAL = encoder.encode("_walgate_lsn");

const BIND = encodeFrame(
  Frontend.BIND,
  concatBytes([PORTAL, new Uint8Array(1), PROBE_NAME, new Uint8Array(1), new Uint8Array(6)]),
);
const EXECUTE = encodeFrame(Frontend.EXECUTE, concatBytes([PORTAL, new Uint8Array(5)]));

export const PROBE_BIND_EXECUTE_FRAMES = concatBytes([BIND, EXECUTE]);

/** Writes the client's Sync and the probe. Injected, so that a test can show what a wrong place does. */
export type ProbePlacement = (writer: SegmentWriter, result: ProbeResult) => void;

/**
 * Behind the client's own Sync, in a segment of its own: before it the probe would run inside the client's implicit transaction and
 * read a position that its commit record is not part of.
 */
export const probeAfterSync: ProbePlacement = (writer, result) => {
  writer.sync(Fate.FORWARD);
  writer.probe(result);
  writer.sync(Fate.HIDE_ALL);
};
