// What a request asks of the router.
import type { Position } from "../consistency/position.ts";

export interface RouteRequest {
  /** `read`: proven read-only, not pinned, outside a transaction. */
  readonly access: "read" | "primary";
  readonly consistency: "session" | "eventual" | "primary";
  /** What a read has to see; from tokens and from the session itself. Not looked at for `eventual`. */
  readonly positions: readonly Position[];
  /** How long a read may wait for a replica to reach `positions` before it goes to the primary. */
  readonly waitMs: number;
  /** Clock milliseconds. Read once for a request: a reading costs as much as all the rest of a simple route. */
  readonly now: number;
  /** Clock milliseconds: until then a primary is waited for if there is none. */
  readonly deadline: number;
  /** Why a read has `primary` access; a write has none. */
  readonly pinnedReason?: "pinned" | "position_unknown" | undefined;
}
