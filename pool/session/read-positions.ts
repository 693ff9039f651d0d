// How fresh a session's next read must be: what it was given, and what it has written since.
import type { Position } from "../consistency/position.ts";
import { mergePositions } from "../consistency/merge-positions.ts";
import type { StartupProfile } from "../connections/startup-profile.ts";
import type { RelayCluster } from "./relay-environment.ts";

/**
 * Lazy: after a write only the moment is noted. A sample of the primary that was asked for later than that covers the write; until one
 * is there the position is unknown and reads go to the primary.
 */
export class ReadPositions {
  readonly #cluster: RelayCluster;
  #known: readonly Position[];
  /** Drawn when the latest write was acknowledged. */
  #unknownSince: number | undefined;

  constructor(cluster: RelayCluster, known: readonly Position[]) {
    this.#cluster = cluster;
    this.#known = known;
  }

  /** A transaction that may have written has been acknowledged. */
  written(): void {
    this.#unknownSince = this.#cluster.ticket();
    this.#cluster.wantSample();
  }

  /** Positions a replica must have reached, or undefined while they can't be named. */
  current(): readonly Position[] | undefined {
    if (this.#unknownSince === undefined) return this.#known;
    const sampled = this.#cluster.sampledAfter(this.#unknownSince);
    if (sampled === undefined) {
      this.#cluster.wantSample();
      return undefined;
    }
    this.#known = mergePositions(this.#known, [sampled]);
    this.#unknownSince = undefined;
    return this.#known;
  }

  /** What a read under this profile must see of a replica; undefined when only the primary may serve it. */
  under({ poolMode, consistency }: StartupProfile): readonly Position[] | undefined {
    if (poolMode === "session") return undefined;
    // Where no position counts the router knows where to go.
    return consistency === "session" ? this.current() : [];
  }
}
