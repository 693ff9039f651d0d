// Finds the position that a read-after-write token for the segment just sent will carry.
import { type BackendConnection, Forecast } from "../backend/backend-connection.ts";
import type { Position } from "../consistency/position.ts";
import type { ProbeMark } from "../routing/database-cluster.ts";
import type { RelayEnvironment, RelayIdentity } from "./relay-environment.ts";
import type { SegmentWriter } from "./segment-writer.ts";

/** The position, or undefined when none is needed (nothing can have been written) or none could be had. */
export type MintResult = (position: Position | undefined) => void;

/** An oracle's answer is one round trip on a connection of ours; past this the answer goes out without a token. */
const ORACLE_TIMEOUT_MS = 2_000;

/**
 * In trusted profiles the probe travels behind the client's Sync. In untrusted ones, and where the probe was not answered, the
 * oracle's own connection is asked once the commit is acknowledged.
 */
export class Mint {
  readonly #environment: RelayEnvironment;
  readonly #identity: RelayIdentity;
  #wanted: MintResult | undefined;
  #isProbing = false;

  constructor(environment: RelayEnvironment, identity: RelayIdentity) {
    this.#environment = environment;
    this.#identity = identity;
  }

  /** For the next Sync that is sent. */
  want(result: MintResult): void {
    this.#wanted = result;
  }

  /** Writes the client's Sync, with the probe where one is wanted and allowed. */
  sync(writer: SegmentWriter, backend: BackendConnection): boolean {
    const isAllowed =
      this.#wanted !== undefined &&
      !this.#isProbing &&
      backend.profile.isTrusted &&
      backend.server.role === "primary" &&
      // Inside a transaction block it would read a position that the commit is not part of, or make the block fail.
      backend.forecast === Forecast.IDLE;
    if (!isAllowed) return false;
    this.#isProbing = true;
    const mark = this.#identity.cluster.probeMark(backend.server);
    this.#environment.placement(writer, (lsn) => {
      this.#isProbing = false;
      this.#probed(lsn, mark, backend);
    });
    return true;
  }

  /** Nothing is owed any more, in a transaction block or not; `mayHaveWritten` on the primary. A probe has answered by now. */
  settled(mayHaveWritten: boolean): void {
    if (this.#wanted === undefined || this.#isProbing) return;
    if (mayHaveWritten) this.#askOracle();
    else this.#done(undefined);
  }

  /** The connection was lost: what was committed is unknown, and so is the position. */
  lost(): void {
    this.#isProbing = false;
    if (this.#wanted !== undefined) this.#askOracle();
  }

  /** Without a position here the oracle is asked once the connection has settled. */
  #probed(lsn: string | undefined, mark: ProbeMark | undefined, backend: BackendConnection): void {
    const position = lsn === undefined ? undefined : this.#identity.cluster.toPosition(lsn, mark);
    if (typeof position === "object") {
      this.#done(position);
      return;
    }
    this.#environment.counters.probesFailed++;
    // No healthy primary says this.
    if (position === "probe_backwards" || position === "malformed") backend.isTainted = true;
  }

  #askOracle(): void {
    const result = this.#wanted;
    this.#wanted = undefined;
    const deadline = this.#environment.clock.now() + ORACLE_TIMEOUT_MS;
    this.#identity.cluster.oracle(deadline).then(
      (position) => result?.(position),
      // The commit stands; the caller gets its answer without a token, which only costs it a fresh read.
      () => result?.(undefined),
    );
  }

  #done(position: Position | undefined): void {
    const result = this.#wanted;
    this.#wanted = undefined;
    result?.(position);
  }
}
