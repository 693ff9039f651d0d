// A primary and its replicas, what happens to them, and the truth about what was committed and lost.
import type { SeededRandom } from "#test/support/seeded-random.ts";
import type { SimClock } from "../sim-clock.ts";
import type { SimSocket } from "../sim-network.ts";
import type { Trace } from "../trace.ts";
import { LockTable } from "./lock-table.ts";
import { ServerSession } from "./server-session.ts";
import { SimServer } from "./sim-server.ts";
import type { SessionState } from "./statement-runner.ts";
import { type Change, Timeline } from "./write-ahead-log.ts";

export interface SimClusterOptions {
  readonly clock: SimClock;
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly serverCount: number;
  /** A statement of this client's runs in a session of this state. */
  readonly observe: (client: number, state: SessionState) => void;
}

export class SimCluster {
  readonly clock: SimClock;
  readonly random: SeededRandom;
  readonly trace: Trace;
  readonly servers: readonly SimServer[];
  readonly locks = new LockTable();
  readonly observe: SimClusterOptions["observe"];
  /** Stamps that no server will ever show again, since a failover left them behind. */
  readonly lost = new Set<number>();
  statementCount = 0;
  #newest: Timeline;
  #stamp = 0;
  #processId = 0;

  constructor({ clock, random, trace, serverCount, observe }: SimClusterOptions) {
    this.clock = clock;
    this.random = random;
    this.trace = trace;
    this.observe = observe;
    const first = new Timeline(1, []);
    this.#newest = first;
    this.servers = Array.from(
      { length: serverCount },
      (_, index) => new SimServer(`server${index + 1}`, clock, first, index === 0),
    );
  }

  /** Of two, the one that was promoted last. */
  get primary(): SimServer | undefined {
    return this.servers.find(
      ({ isPrimary, isUp, timeline }) => isPrimary && isUp && timeline === this.#newest,
    );
  }

  nextStamp(): number {
    return ++this.#stamp;
  }

  accept(host: string, socket: SimSocket): boolean {
    const server = this.servers.find(({ name }) => name === host);
    if (server === undefined || !server.isUp) return false;
    const processId = ++this.#processId;
    server.sessions.set(processId, new ServerSession(this, server, socket, processId));
    return true;
  }

  /** What a primary has committed that a promotion left behind is lost at once. */
  commit(server: SimServer, sizeBytes: number, changes: readonly Change[]): void {
    server.commit(sizeBytes, changes);
    if (server.timeline === this.#newest) return;
    for (const { stamp } of changes) this.lost.add(stamp);
  }

  /** A cancel request, which names its target by process id and secret. */
  cancel(server: SimServer, processId: number, secret: number): void {
    const session = server.sessions.get(processId);
    if (session !== undefined && session.secret === secret) session.cancel();
  }

  crash(server: SimServer): void {
    if (!server.isUp) return;
    server.catchUp();
    server.isUp = false;
    if (server.isPrimary) server.timeline.endedAt = this.clock.now();
    this.trace.note(`crash ${server.name}`);
    for (const session of server.sessions.values()) session.lose();
    server.sessions.clear();
  }

  /** `forgottenRecords`: a replica may begin again at an older restartpoint. */
  restart(server: SimServer, forgottenRecords = 0): void {
    if (server.isUp) return;
    const primary = this.servers.find(
      ({ isPrimary, timeline }) => isPrimary && timeline === this.#newest,
    );
    server.isUp = true;
    server.startedAt = this.clock.now();
    server.isReplayPaused = false;
    if (server === primary) {
      server.timeline.endedAt = Number.POSITIVE_INFINITY;
    } else if (primary !== undefined) {
      this.follow(server, primary, forgottenRecords);
    }
    this.trace.note(`restart ${server.name} at record ${server.applied}`);
  }

  /** A replica of an older history joins the present one, from the last record that both have. */
  follow(server: SimServer, primary: SimServer, forgottenRecords = 0): void {
    server.isPrimary = false;
    const mine = server.timeline.records;
    const theirs = primary.timeline.records;
    let shared = Math.min(server.applied, theirs.length);
    while (shared > 0 && mine[shared - 1] !== theirs[shared - 1]) shared--;
    server.rebuild(primary.timeline, Math.max(0, shared - forgottenRecords));
  }

  /**
   * A primary that is not down goes on, and what it commits is lost. Other replicas stay with its history until they are told to
   * follow. Only a replica of the latest history can be promoted.
   */
  promote(server: SimServer): void {
    const old = server.timeline;
    if (old !== this.#newest || server.isPrimary) throw new Error("not a replica of the latest");
    // What it has received is replayed first, whatever held it back.
    server.isReplayPaused = false;
    server.applyMs = 0;
    const kept = server.applied;
    for (const record of old.records.slice(kept)) {
      for (const { stamp } of record.changes) this.lost.add(stamp);
    }
    for (const other of this.servers) other.isPrimary &&= other.isUp;
    const timeline = new Timeline(old.id + 1, old.records.slice(0, kept));
    this.#newest = timeline;
    server.timeline = timeline;
    server.isPrimary = true;
    server.log(80);
    this.trace.note(`promote ${server.name} to timeline ${timeline.id} at record ${kept}`);
    // Sessions of a replica that is promoted go on as sessions of a primary.
  }
}
