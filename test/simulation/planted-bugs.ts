// Bugs that are put in from outside, each of the kind that an invariant is there for: a simulation that does not find them finds nothing.
import type { BackendConnection } from "#pool/backend/backend-connection.ts";
import type { ConnectionPools } from "#pool/connections/connection-pools.ts";
import type { OpenControl } from "#pool/consistency/position-monitor.ts";
import { IDENTITY_QUERY } from "#pool/consistency/server-sample.ts";
import { Fate } from "#pool/exchange/reply-plan.ts";
import type { ProbePlacement } from "#pool/session/probe.ts";
import type { Invariant } from "./findings.ts";
import type { SimNetwork } from "./sim-network.ts";

export interface PlantedBug {
  readonly name: string;
  /** Which of them may be the first to notice. */
  readonly foundAs: readonly Invariant[];
  readonly plantInPools?: (pools: ConnectionPools<BackendConnection>, network: SimNetwork) => void;
  readonly control?: (open: OpenControl) => OpenControl;
  readonly placement?: ProbePlacement;
  /** The share of answers that go to another client. */
  readonly misdirected?: number;
}

/** Once in so many leases. */
const ONE_IN = 400;
/** While the client's answers are on their way. */
const EARLY_MS = 0.2;
const TIMELINE_OF_REPLICA = 5;
const WAL_FILE_OF_PRIMARY = 6;

const releasedTwice: PlantedBug = {
  name: "connection-released-twice",
  foundAs: [
    "one owner",
    "own answers",
    "valid protocol",
    "no state carried over",
    "no bug reported",
  ],
  plantInPools: (pools, network) => {
    const acquire = pools.acquire.bind(pools);
    pools.acquire = (request) => {
      const connection = acquire(request);
      if (connection !== undefined && network.random.below(ONE_IN) === 0) {
        network.clock.schedule(EARLY_MS, () => pools.release(connection));
      }
      return connection;
    };
  },
};

const waiterDropped: PlantedBug = {
  name: "waiter-dropped",
  foundAs: ["no waiter forgotten"],
  plantInPools: (pools, network) => {
    const acquire = pools.acquire.bind(pools);
    pools.acquire = (request) => {
      const connection = acquire(request);
      if (connection === undefined && network.random.below(ONE_IN) === 0) pools.abandon(request);
      return connection;
    };
  },
};

const answerMisdirected: PlantedBug = {
  name: "answer-to-wrong-client",
  foundAs: ["own answers", "valid protocol", "no waiter forgotten"],
  misdirected: 1 / 2_000,
};

/** Every server says that it is on the first timeline, so that positions are compared by their LSN alone. */
const timelineIgnored: PlantedBug = {
  name: "timeline-ignored",
  foundAs: ["no read older than its token"],
  control: (open) => async (server, deadline) => {
    const connection = await open(server, deadline);
    const query = connection.query.bind(connection);
    connection.query = async (text, until) => {
      const rows = await query(text, until);
      if (text !== IDENTITY_QUERY) return rows;
      return rows.map((row) => {
        const changed = [...row];
        if (changed[TIMELINE_OF_REPLICA] !== null) changed[TIMELINE_OF_REPLICA] = "1";
        const file = changed[WAL_FILE_OF_PRIMARY];
        if (typeof file === "string") changed[WAL_FILE_OF_PRIMARY] = `00000001${file.slice(8)}`;
        return changed;
      });
    };
    return connection;
  },
};

const probeBeforeCommit: PlantedBug = {
  name: "probe-before-commit",
  foundAs: ["no read older than its token"],
  placement: (writer, result) => {
    writer.probe(result);
    writer.sync(Fate.FORWARD);
  },
};

export const PLANTED_BUGS: readonly PlantedBug[] = [
  releasedTwice,
  waiterDropped,
  answerMisdirected,
  timelineIgnored,
  probeBeforeCommit,
];
