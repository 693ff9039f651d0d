// What a relay needs from outside: the client it serves, whose it is, and the parts of the pool it works with.
import type { BackendConnection } from "../backend/backend-connection.ts";
import type { ConnectionPools } from "../connections/connection-pools.ts";
import type { StartupProfile } from "../connections/startup-profile.ts";
import type { DatabaseCluster } from "../routing/database-cluster.ts";
import type { PinReason } from "../sql/statement-class.ts";
import type { StatementClassifier } from "../sql/statement-classifier.ts";
import type { Clock } from "../time/clock.ts";
import type { ProbePlacement } from "./probe.ts";
import type { StatementRegistry } from "./statement-registry.ts";
import type { ParameterSet } from "./startup-parameters.ts";

/** The client's side of a relay: a door's channel, or the collector of an HTTP request. */
export interface RelayClient {
  /** Answers, in order: whole messages or parts of one. Not to be kept: the bytes may be gone when the call returns. */
  forward(bytes: Uint8Array): void;
  /** Answers that the client has not taken yet. */
  readonly queuedBytes: number;
  /** Stop and go on calling `frame`; paired, never nested. */
  suspendInput(): void;
  resumeInput(): void;
  /** The session is over. `error`, a FATAL ErrorResponse, is the last thing to say; undefined when nothing can be said any more. */
  abort(error: Uint8Array | undefined): void;
}

/** Bytes of unread answers over all clients, against one cap. */
export interface OutputBudget {
  usedBytes: number;
  readonly bytesMax: number;
}

export interface RelayCounters {
  readonly pins: Map<PinReason | "session_mode", number>;
  readonly routes: Map<string, number>;
  lostBackends: number;
  slowReadersClosed: number;
  probesFailed: number;
}

export function newRelayCounters(): RelayCounters {
  return {
    pins: new Map(),
    routes: new Map(),
    lostBackends: 0,
    slowReadersClosed: 0,
    probesFailed: 0,
  };
}

export interface RelayEnvironment {
  readonly clock: Clock;
  readonly pools: ConnectionPools<BackendConnection>;
  readonly classifier: StatementClassifier;
  readonly registry: StatementRegistry;
  readonly placement: ProbePlacement;
  readonly output: OutputBudget;
  /** How long a client may take nothing while it holds a backend connection. */
  readonly clientReadTimeoutMs: number;
  readonly counters: RelayCounters;
  /** A programmer's error that surfaced where nobody can be told. */
  readonly reportBug: (error: unknown) => void;
}

/** What a relay asks of its database's servers. */
export type RelayCluster = Pick<
  DatabaseCluster,
  | "route"
  | "covers"
  | "ticket"
  | "sampledAfter"
  | "wantSample"
  | "probeMark"
  | "toPosition"
  | "oracle"
>;

export interface RelayIdentity {
  readonly profile: StartupProfile;
  readonly cluster: RelayCluster;
  /** Part of the match key: who sends untrusted SQL, else empty. */
  readonly principal: string;
  readonly parameters: ParameterSet;
}
