// What goes wrong in a run, and when: servers that die, lag, hang, start again further back, and are promoted.
import type { SimServer } from "./server/sim-server.ts";
import type { SimWorld } from "./sim-world.ts";

const GAP_MS_MAX = 900;
const FAILOVER_SHARE = 0.5;

/** Schedules faults until `endMs`; by then all of them are over. */
export function scheduleFaults(world: SimWorld, endMs: number): void {
  const { clock, random } = world;
  if (random.chance(FAILOVER_SHARE)) {
    clock.schedule(1_500 + random.next() * 5_000, () => failOver(world));
  }
  const next = (): void => {
    if (clock.now() > endMs) return;
    fault(world);
    clock.schedule(random.next() * GAP_MS_MAX, next);
  };
  clock.schedule(random.next() * GAP_MS_MAX, next);
}

/** Everything works again. */
export function heal({ cluster }: SimWorld): void {
  for (const server of cluster.servers) {
    cluster.restart(server);
    server.isReplayPaused = false;
    server.hungUntil = 0;
    server.transitMs = 1;
    server.applyMs = 0;
    const { primary } = cluster;
    const isOrphan = primary !== undefined && server.timeline !== primary.timeline;
    if (isOrphan) cluster.follow(server, primary);
  }
}

function fault(world: SimWorld): void {
  const { cluster, random, clock, trace, counts } = world;
  const server = world.pick(cluster.servers);
  if (!server.isUp) return;
  counts.faults++;
  const choice = random.below(7);
  trace.note(`fault ${choice} at ${server.name}`);
  switch (choice) {
    case 0:
      crashForAWhile(world, server);
      return;
    case 1:
      server.catchUp();
      server.isReplayPaused = true;
      clock.schedule(random.next() * 1_500, () => {
        server.isReplayPaused = false;
      });
      return;
    case 2:
    case 3:
      lag(world, server);
      return;
    case 4:
      server.hungUntil = clock.now() + random.next() * 800;
      return;
    case 5:
      for (const session of server.sessions.values()) {
        if (random.chance(0.2)) session.lose();
      }
      return;
    default:
      for (const session of server.sessions.values()) {
        if (random.chance(0.2)) session.cancel();
      }
  }
}

function lag({ clock, random }: SimWorld, server: SimServer): void {
  server.catchUp();
  if (random.chance(0.5)) server.transitMs = random.next() * 400;
  else server.applyMs = random.next() * 400;
  clock.schedule(random.next() * 2_000, () => {
    server.catchUp();
    server.transitMs = 1;
    server.applyMs = 0;
  });
}

function crashForAWhile({ cluster, clock, random }: SimWorld, server: SimServer): void {
  cluster.crash(server);
  // A replica may come back from an older restartpoint; a primary has flushed what it acknowledged.
  const forgotten = server.isPrimary ? 0 : random.below(60);
  clock.schedule(random.next() * 800, () => cluster.restart(server, forgotten));
}

/** A replica that has received less than another is promoted; the others learn of it later. */
function failOver(world: SimWorld): void {
  const { cluster, clock, random, counts } = world;
  const { primary } = cluster;
  const replicas = cluster.servers.filter(({ isPrimary, isUp }) => !isPrimary && isUp);
  const chosen = replicas[random.below(replicas.length)];
  if (primary === undefined || chosen === undefined) return;
  counts.faults++;
  chosen.catchUp();
  chosen.transitMs = 20 + random.next() * 300;
  clock.schedule(random.next() * 400, () => {
    if (!chosen.isUp || !primary.isUp || !primary.isPrimary) return;
    cluster.crash(primary);
    clock.schedule(random.next() * 200, () => {
      if (!chosen.isUp || primary.isUp) return;
      cluster.promote(chosen);
      for (const server of cluster.servers) {
        if (server === chosen) continue;
        clock.schedule(200 + random.next() * 1_500, () => rejoin(world, server));
      }
    });
  });
}

/** pg_rewind and a restart, as a tool for failover does them. */
function rejoin({ cluster }: SimWorld, server: SimServer): void {
  if (server.isPrimary) return;
  cluster.crash(server);
  cluster.restart(server);
}
