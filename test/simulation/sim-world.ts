// All that a run is made of, and what its clients know of each other.
import type { SeededRandom } from "#test/support/seeded-random.ts";
import type { Findings } from "./findings.ts";
import { KnownWrites } from "./known-writes.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import type { SimCluster } from "./server/sim-cluster.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimGateway } from "./sim-gateway.ts";
import type { SimLink } from "./sim-link.ts";
import type { SimNetwork } from "./sim-network.ts";
import type { Trace } from "./trace.ts";

/** A token that somebody has, and the write that it must show. */
export interface KnownToken {
  readonly text: string;
  readonly key: number;
  readonly stamp: number;
}

/** Somebody who sends requests until told to stop. */
export interface Actor {
  /** Clock milliseconds of a request that is not answered yet. */
  readonly waitingSince: number | undefined;
  readonly name: string;
  start(): void;
  /** No new requests. */
  stop(): void;
  /** Goes for good. */
  leave(): void;
}

const TOKENS_KEPT = 40;

export class SimWorld {
  readonly clock: SimClock;
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly findings: Findings;
  readonly network: SimNetwork;
  readonly cluster: SimCluster;
  readonly gateways: readonly SimGateway[];
  readonly bug: PlantedBug | undefined;
  /** application_name that each client must have in force now; others have none. */
  readonly names: Map<number, string>;
  /** Writes that were acknowledged to anybody. */
  readonly acknowledged = new KnownWrites();
  readonly tokens: KnownToken[] = [];
  readonly links: SimLink[] = [];
  readonly counts = { requests: 0, errors: 0, tokenReads: 0, replicaReads: 0, faults: 0 };
  isStopping = false;
  #lastClient = 0;

  constructor(parts: {
    readonly clock: SimClock;
    readonly random: SeededRandom;
    readonly trace: Trace;
    readonly findings: Findings;
    readonly network: SimNetwork;
    readonly cluster: SimCluster;
    readonly gateways: readonly SimGateway[];
    readonly names: Map<number, string>;
    readonly bug: PlantedBug | undefined;
  }) {
    this.clock = parts.clock;
    this.random = parts.random;
    this.trace = parts.trace;
    this.findings = parts.findings;
    this.network = parts.network;
    this.cluster = parts.cluster;
    this.gateways = parts.gateways;
    this.names = parts.names;
    this.bug = parts.bug;
  }

  nextClient(): number {
    return ++this.#lastClient;
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.random.below(choices.length)];
    if (choice === undefined) throw new Error("nothing to choose from");
    return choice;
  }

  /** Of the gateway's answers to this link some go elsewhere, if that bug is planted. */
  register(link: SimLink): void {
    const share = this.bug?.misdirected;
    if (share === undefined) return;
    this.links.push(link);
    link.misdirect = () => {
      if (!this.random.chance(share)) return undefined;
      const other = this.pick(this.links);
      return other === link || !other.isOpen ? undefined : other;
    };
  }

  wrote(key: number, stamp: number): void {
    this.acknowledged.note(key, stamp);
  }

  remember(token: KnownToken): void {
    this.tokens.push(token);
    if (this.tokens.length > TOKENS_KEPT) this.tokens.shift();
  }

  /** Whether a read by somebody who knew of these writes, the latest first, may show `stamp`. */
  checkRead(client: string, key: number, known: readonly number[], stamp: number): void {
    const least = known.find((one) => !this.cluster.lost.has(one)) ?? 0;
    if (stamp >= least) return;
    const detail = `${client} read ${stamp} of key ${key} and must not read less than ${least}`;
    this.findings.report("no read older than its token", detail);
  }
}
