// One database's servers as a whole: who serves a request, what a replica has seen, and what the primary's position is.
import { parseLsn, normaliseLsn } from "../consistency/lsn.ts";
import { hasSameHistory } from "../consistency/merge-positions.ts";
import {
  PositionMonitor,
  type MonitorEvent,
  type OpenControl,
  type PollDemand,
  type ServerSample,
} from "../consistency/position-monitor.ts";
import { PositionOracle } from "../consistency/position-oracle.ts";
import type { Position } from "../consistency/position.ts";
import { ReadGate, type ReplayProgress } from "../consistency/read-gate.ts";
import type { Clock } from "../time/clock.ts";
import { PrimaryWatch } from "./primary-watch.ts";
import type { RouteRequest } from "./route-request.ts";
import { ServerSelection } from "./server-selection.ts";
import type { Route, RouteReason, Server, ServerRole } from "./server.ts";

/** What a route's reason does not tell. */
export type RoutingEvent =
  MonitorEvent | "two_primaries" | "gate_full" | "oracle_failed" | "probe_backwards";

export interface DatabaseClusterOptions {
  /** For error texts. */
  readonly name: string;
  readonly servers: readonly Server[];
  readonly openControl: OpenControl;
  readonly clock: Clock;
  /** From 0 up to 1, as Math.random. */
  readonly random: () => number;
  readonly counters?: { count(event: RoutingEvent): void };
}

/** Draw it when a probe is written, hand it back with the answer. */
export type ProbeMark = ServerSample;

export interface ServerSnapshot {
  readonly name: string;
  readonly role: ServerRole;
  readonly epoch: number;
  readonly leased: number;
  /** Reads that wait for its replay. */
  readonly waiting: number;
  /** Undefined while nothing recent is known. */
  readonly position: Position | undefined;
  readonly isReplayPaused: boolean;
  readonly sampleAgeMs: number | undefined;
}

/** Reads with positions come in bursts; replicas are watched closely for this long after one. */
const TRAFFIC_MS = 1_000;

export class DatabaseCluster {
  readonly #options: DatabaseClusterOptions;
  readonly #clock: Clock;
  readonly #monitors: readonly PositionMonitor[];
  readonly #monitorOf: ReadonlyMap<Server, PositionMonitor>;
  readonly #primary: PrimaryWatch;
  readonly #gate: ReadGate;
  readonly #oracle: PositionOracle;
  readonly #selection: ServerSelection;
  /** Orders tickets and polls of the primary, so that no clock has to. */
  #sequence = 0;
  #isSampleWanted = false;
  #trafficAt = Number.NEGATIVE_INFINITY;
  /** The highest position of the present primary's history that is known to exist. */
  #reached: Position | undefined;

  constructor(options: DatabaseClusterOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#monitors = options.servers.map((server) => this.#monitor(server));
    this.#monitorOf = new Map(this.#monitors.map((monitor) => [monitor.server, monitor]));
    this.#selection = new ServerSelection(options.random);
    this.#primary = new PrimaryWatch({
      databaseName: options.name,
      monitors: this.#monitors,
      clock: options.clock,
      conflict: () => this.#count("two_primaries"),
    });
    this.#gate = new ReadGate({
      clock: options.clock,
      progress: (server, lsn) => this.#progress(server, lsn),
      joined: (server) => this.#monitorOf.get(server)?.demandChanged(),
      full: () => this.#count("gate_full"),
    });
    this.#oracle = new PositionOracle({
      openControl: options.openControl,
      clock: options.clock,
      whenPrimary: (deadline) => this.#primary.when(deadline),
    });
  }

  start(): void {
    for (const monitor of this.#monitors) monitor.start();
  }

  /** Final. Whoever waits is rejected with 57P01. */
  stop(): void {
    this.#primary.stop();
    this.#gate.clear();
    this.#oracle.stop();
    for (const monitor of this.#monitors) monitor.stop();
  }

  /** Resolves when a primary is known; rejects with PoolError ERR_NO_SERVER at the deadline. */
  async waitUntilReady(deadline: number): Promise<void> {
    await this.#primary.when(deadline);
  }

  /**
   * Who may serve, without waiting wherever no wait is needed. The primary is never appended to a list of
   * replicas: when all of them are full the request queues, so that load on replicas does not become load on
   * the primary. Whoever gets a connection only after a wait asks `isCurrent` before using it.
   *
   * Rejects with PoolError ERR_NO_SERVER (57P03) when it takes a primary and none is found until the deadline.
   */
  route(request: RouteRequest): Route | Promise<Route> {
    const { now } = request;
    if (request.access === "primary") {
      return this.#toPrimary(request.pinnedReason ?? "write", now, request.deadline);
    }
    if (request.consistency === "primary") {
      return this.#toPrimary("consistency_primary", now, request.deadline);
    }
    const positions = request.consistency === "eventual" ? [] : request.positions;
    if (positions.length > 0) this.#noteTraffic();
    const found = this.#findReplicas(positions, now);
    if (typeof found === "string") return this.#toPrimary(found, now, request.deadline);
    if (found.ready.length > 0) return this.#toReplica(found.ready);
    if (request.waitMs <= 0) return this.#toPrimary("wait_timeout", now, request.deadline);
    return this.#routeAfterWait(request, found.lsn);
  }

  /**
   * For a connection that was waited for: whether what was decided by `epoch` still holds. A replica must still
   * be one, in the same epoch, with replay running and `positions` covered; a primary must still be the primary.
   */
  isCurrent(server: Server, epoch: number, positions: readonly Position[]): boolean {
    if (server.role === "primary") return this.#primary.present?.server === server;
    return server.epoch === epoch && this.covers(server, positions);
  }

  /** True for a replica that may serve reads and has replayed all positions, and for the primary. */
  covers(server: Server, positions: readonly Position[]): boolean {
    const monitor = this.#monitorOf.get(server);
    if (monitor === undefined) return false;
    if (monitor === this.#primary.present) return true;
    const sample = this.#eligible(monitor, this.#clock.now());
    return sample !== undefined && positions.every((position) => hasReplayed(sample, position));
  }

  /** Draw one after a commit is acknowledged; then call `wantSample`. */
  ticket(): number {
    return this.#sequence;
  }

  /**
   * A position that covers everything that was committed before the ticket was drawn: the present primary was
   * asked for it later than that. Undefined until such a sample is there.
   */
  sampledAfter(ticket: number): Position | undefined {
    const sample = this.#primary.present?.sample;
    return sample !== undefined && sample.mark > ticket ? sample.position : undefined;
  }

  /** A session waits for its position: the primary is sampled sooner, and replicas are watched closely. Cheap. */
  wantSample(): void {
    this.#noteTraffic();
    if (this.#isSampleWanted) return;
    this.#isSampleWanted = true;
    this.#primary.present?.demandChanged();
  }

  /** Undefined unless `server` is the present primary: then a probe's answer from it cannot be placed. */
  probeMark(server: Server): ProbeMark | undefined {
    const primary = this.#primary.present;
    return primary?.server === server ? primary.sample : undefined;
  }

  /**
   * A probe's answer as a position. `mark` was drawn when the probe was written: the answer cannot be lower than
   * what had been sampled by then, while samples that came later may be higher.
   *
   * `unknown`: the primary has changed or restarted meanwhile, or there was no mark; ask the oracle.
   * `probe_backwards`: no PostgreSQL answers this, so drop the connection; `malformed` likewise.
   */
  toPosition(
    rawLsn: string,
    mark: ProbeMark | undefined,
  ): Position | "unknown" | "malformed" | "probe_backwards" {
    const raw = parseLsn(rawLsn);
    if (raw === undefined) return "malformed";
    const present = this.#primary.present?.sample;
    if (mark === undefined || present === undefined) return "unknown";
    // The identity is read once per epoch, so the object stands for the epoch.
    if (present.identity !== mark.identity) return "unknown";
    const lsn = normaliseLsn(raw, mark.identity);
    if (lsn < mark.position.lsn) {
      this.#count("probe_backwards");
      return "probe_backwards";
    }
    const position = { ...mark.position, lsn };
    this.#noteReached(position);
    return position;
  }

  /**
   * The primary's position, asked after this call over a connection of our own: for commits of untrusted SQL,
   * and where no probe may be sent. Rejects as `PositionOracle.read` says.
   */
  async oracle(deadline: number): Promise<Position> {
    const position = await this.#oracle.read(deadline);
    this.#noteReached(position);
    return position;
  }

  snapshot(): readonly ServerSnapshot[] {
    const now = this.#clock.now();
    return this.#monitors.map(({ server, sample }) => ({
      name: server.name,
      role: server.role,
      epoch: server.epoch,
      leased: server.leased,
      waiting: this.#gate.count(server),
      position: sample?.position,
      isReplayPaused: sample?.isReplayPaused ?? false,
      sampleAgeMs: sample === undefined ? undefined : now - sample.sentAt,
    }));
  }

  #monitor(server: Server): PositionMonitor {
    const { openControl, clock, random } = this.#options;
    const monitor: PositionMonitor = new PositionMonitor({
      server,
      openControl,
      clock,
      random,
      demand: () => this.#demand(monitor),
      pollSent: () => this.#pollSent(monitor),
      changed: () => this.#sampleChanged(monitor),
      count: (event) => this.#count(event),
    });
    return monitor;
  }

  #demand(monitor: PositionMonitor): PollDemand {
    if (this.#gate.count(monitor.server) > 0) return "waiting";
    if (monitor === this.#primary.present) return this.#isSampleWanted ? "sampling" : "idle";
    return this.#clock.now() - this.#trafficAt <= TRAFFIC_MS ? "traffic" : "idle";
  }

  #pollSent(monitor: PositionMonitor): number {
    if (monitor === this.#primary.present) this.#isSampleWanted = false;
    return ++this.#sequence;
  }

  #sampleChanged(monitor: PositionMonitor): void {
    this.#primary.update();
    const present = this.#primary.present;
    // A restart after a crash may begin below what was reached, where commits were not flushed.
    if (present === undefined) this.#reached = undefined;
    else if (monitor === present && present.sample !== undefined) {
      this.#noteReached(present.sample.position);
    }
    this.#gate.serverChanged(monitor.server);
  }

  #noteReached(position: Position): void {
    const history = this.#primary.history;
    if (history === undefined || !hasSameHistory(history, position)) return;
    const known = this.#reached;
    if (known === undefined || !hasSameHistory(known, position) || known.lsn < position.lsn) {
      this.#reached = position;
    }
  }

  #noteTraffic(): void {
    const now = this.#clock.now();
    const wasIdle = now - this.#trafficAt > TRAFFIC_MS;
    this.#trafficAt = now;
    if (!wasIdle) return;
    for (const monitor of this.#monitors) monitor.demandChanged();
  }

  /** The sample of a replica that may serve reads: recent, replay running, of the primary's history. */
  #eligible(monitor: PositionMonitor, now: number): ServerSample | undefined {
    const sample = monitor.sampleAt(now);
    if (sample === undefined || !sample.isInRecovery || sample.isReplayPaused) return undefined;
    const history = this.#primary.history;
    if (history !== undefined && !hasSameHistory(history, sample.identity)) return undefined;
    return sample;
  }

  /** Replicas that can serve at once, or the LSN to wait for if none of the eligible ones can. */
  #findReplicas(
    positions: readonly Position[],
    now: number,
  ): { readonly ready: readonly Server[]; readonly lsn: bigint } | "no_replica" | "token_foreign" {
    const ready: Server[] = [];
    let history = this.#primary.history;
    let eligibleCount = 0;
    for (const monitor of this.#monitors) {
      const sample = this.#eligible(monitor, now);
      if (sample === undefined) continue;
      eligibleCount++;
      history ??= sample.identity;
      if (positions.every((position) => hasReplayed(sample, position))) ready.push(monitor.server);
    }
    if (ready.length > 0) return { ready, lsn: 0n };
    if (history === undefined) return "no_replica";
    let lsn = 0n;
    for (const position of positions) {
      if (!hasSameHistory(position, history)) return "token_foreign";
      const needed = normaliseLsn(position.lsn, history);
      if (needed > lsn) lsn = needed;
    }
    return eligibleCount === 0 ? "no_replica" : { ready, lsn };
  }

  async #routeAfterWait(request: RouteRequest, lsn: bigint): Promise<Route> {
    const { clock } = this.#options;
    const until = Math.min(clock.now() + request.waitMs, request.deadline);
    const refused = await this.#mayWaitFor(lsn, until);
    if (refused !== undefined) return this.#toPrimary(refused, clock.now(), request.deadline);
    const candidates = this.#monitors
      .filter((monitor) => this.#eligible(monitor, clock.now()) !== undefined)
      .map((monitor) => monitor.server);
    // One that caught up while the primary was asked must not be waited for until its next sample.
    const isThere = candidates.some((server) => this.#progress(server, lsn) === "reached");
    if (!isThere) await this.#gate.wait(candidates, lsn, Math.max(0, until - clock.now()));
    // Asked anew, since roles and timelines may have changed on the way.
    const now = clock.now();
    const found = this.#findReplicas(request.positions, now);
    if (typeof found === "string") return this.#toPrimary(found, now, request.deadline);
    if (found.ready.length > 0) return this.#toReplica(found.ready);
    return this.#toPrimary("wait_timeout", now, request.deadline);
  }

  /** Nobody waits for what the primary has not written: asked once, as another gateway may know more than we do. */
  async #mayWaitFor(lsn: bigint, until: number): Promise<RouteReason | undefined> {
    // Without a primary there is nobody to ask, and the wait is short.
    if (this.#primary.present === undefined || this.#hasReached(lsn)) return undefined;
    try {
      await this.oracle(until);
    } catch {
      this.#count("oracle_failed");
      return "wait_timeout";
    }
    return this.#hasReached(lsn) ? undefined : "token_future";
  }

  #hasReached(lsn: bigint): boolean {
    return this.#reached !== undefined && this.#reached.lsn >= lsn;
  }

  #progress(server: Server, lsn: bigint): ReplayProgress {
    const monitor = this.#monitorOf.get(server);
    const sample = monitor === undefined ? undefined : this.#eligible(monitor, this.#clock.now());
    if (sample === undefined) return "unfit";
    return sample.position.lsn >= lsn ? "reached" : "behind";
  }

  #toReplica(ready: readonly Server[]): Route {
    return { role: "replica", servers: this.#selection.order(ready), reason: "replica" };
  }

  #toPrimary(reason: RouteReason, now: number, deadline: number): Route | Promise<Route> {
    const primary = this.#primary.presentAt(now);
    if (primary !== undefined) return { role: "primary", servers: [primary.server], reason };
    return this.#primary
      .when(deadline)
      .then((server): Route => ({ role: "primary", servers: [server], reason }));
  }

  #count(event: RoutingEvent): void {
    this.#options.counters?.count(event);
  }
}

/** The position is normalised here too: an older gateway may have minted it raw. */
function hasReplayed(sample: ServerSample, position: Position): boolean {
  return (
    hasSameHistory(sample.position, position) &&
    sample.position.lsn >= normaliseLsn(position.lsn, sample.identity)
  );
}
