// A database's cluster over scripted servers and a fake clock, ready to be asked for routes.
import { DatabaseCluster, type RoutingEvent } from "#pool/routing/database-cluster.ts";
import type { Position } from "#pool/consistency/position.ts";
import type { RouteRequest } from "#pool/routing/route-request.ts";
import type { Route } from "#pool/routing/server.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import {
  elapse,
  opener,
  ScriptedServer,
  settle,
  SYSTEM,
} from "#test/unit/pool/consistency/scripted-server.ts";

export const START_LSN = 0x1000_1000n;

export interface ClusterBench {
  readonly clock: FakeClock;
  readonly primary: ScriptedServer;
  readonly one: ScriptedServer;
  readonly two: ScriptedServer;
  readonly cluster: DatabaseCluster;
  readonly events: RoutingEvent[];
  pass(ms: number): Promise<void>;
}

export interface Served {
  readonly by: string;
  readonly reason: string;
}

/** The primary stands last in the configuration: roles are found by asking. */
export async function startBench(
  prepare: (bench: Omit<ClusterBench, "cluster">) => void = () => {},
): Promise<ClusterBench> {
  const clock = new FakeClock();
  const [one, two, primary] = [
    new ScriptedServer(clock, "one"),
    new ScriptedServer(clock, "two"),
    new ScriptedServer(clock, "primary"),
  ];
  const scripts = [one, two, primary];
  for (const script of scripts) script.lsn = START_LSN;
  primary.isInRecovery = false;
  const events: RoutingEvent[] = [];
  const pass = (ms: number): Promise<void> => elapse(clock, ms);
  prepare({ clock, primary, one, two, events, pass });
  const cluster = new DatabaseCluster({
    name: "app",
    servers: scripts.map((script) => script.server),
    openControl: opener(scripts),
    clock,
    random: () => 0,
    counters: { count: (event) => events.push(event) },
  });
  cluster.start();
  await settle();
  return { clock, primary, one, two, cluster, events, pass };
}

export function at(lsn: bigint, timeline = 1, systemIdentifier = SYSTEM): Position {
  return { systemIdentifier, timeline, lsn };
}

export function read(bench: ClusterBench, request: Partial<RouteRequest> = {}): RouteRequest {
  return {
    access: "read",
    consistency: "session",
    positions: [],
    waitMs: 100,
    now: bench.clock.now(),
    deadline: bench.clock.now() + 1_000,
    ...request,
  };
}

export function served(route: Route): Served {
  return { by: route.servers.map((server) => server.name).join(","), reason: route.reason };
}

/** Throws when the route had to wait. */
export function routeNow(bench: ClusterBench, request: Partial<RouteRequest> = {}): Served {
  const route = bench.cluster.route(read(bench, request));
  if (route instanceof Promise) throw new Error("the route waits");
  return served(route);
}

/** What a route that waits becomes; `undefined` until then. */
export function routeLater(
  bench: ClusterBench,
  request: Partial<RouteRequest> = {},
): { result: unknown } {
  const later: { result: unknown } = { result: undefined };
  const route = bench.cluster.route(read(bench, request));
  if (!(route instanceof Promise)) throw new Error("the route does not wait");
  route.then(
    (found) => (later.result = served(found)),
    (error: unknown) => (later.result = error),
  );
  return later;
}
