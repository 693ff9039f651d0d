// One run: a seed in, what happened and what was found wrong out. Two runs of one seed are the same to the last byte.
import { StatementClassifier } from "#pool/sql/statement-classifier.ts";
import { SeededRandom } from "#test/support/seeded-random.ts";
import { heal, scheduleFaults } from "./faults.ts";
import { Findings, type Violation } from "./findings.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { SimCluster } from "./server/sim-cluster.ts";
import type { SessionState } from "./server/statement-runner.ts";
import { SimClock } from "./sim-clock.ts";
import { SimGateway } from "./sim-gateway.ts";
import { SimNetwork } from "./sim-network.ts";
import { PROFILES, TRUSTED, UNTRUSTED } from "./sim-profiles.ts";
import { type Actor, SimWorld } from "./sim-world.ts";
import { TokenCaller } from "./token-caller.ts";
import { Trace } from "./trace.ts";
import { WireClient } from "./wire-client.ts";

const WIRE_CLIENT_COUNT = 65;
const CALLER_COUNT = 35;
const SERVER_COUNT = 3;
const GATEWAY_COUNT = 2;
/** Clients send and faults happen; then all of it ends well, or somebody was forgotten. */
const TRAFFIC_MS = 10_000;
const CHECK_EVERY_MS = 50;
/** A wait for a connection, a server that hangs, a deadlock, and a slow network together take less. */
const FORGOTTEN_MS = 9_000;

/** Shared by all runs: what a text means depends on nothing else, and reading them anew would take most of the time. */
const classifier = new StatementClassifier();

export interface SimulationResult {
  readonly seed: number;
  readonly violation: Violation | undefined;
  /** Of everything that happened. */
  readonly fingerprint: string;
  readonly trace: readonly string[] | undefined;
  readonly statements: number;
  readonly counts: SimWorld["counts"];
}

export interface SimulationOptions {
  readonly seed: number;
  readonly bug?: PlantedBug | undefined;
  readonly isTraced?: boolean;
}

/** `loadStatementParser` must have been awaited. */
export function simulate({ seed, bug, isTraced = false }: SimulationOptions): SimulationResult {
  const world = createWorld(seed, bug, isTraced);
  const actors = new Set<Actor>();
  populate(world, actors);
  for (const gateway of world.gateways) gateway.start();
  for (const actor of actors) actor.start();
  scheduleFaults(world, TRAFFIC_MS - 2_000);
  const { clock, findings } = world;
  try {
    runChecked(world, actors, () => clock.now() >= TRAFFIC_MS);
    world.isStopping = true;
    heal(world);
    for (const actor of actors) actor.stop();
    // Who is forgotten makes this end too.
    runChecked(world, actors, () => ![...actors].some(isWaiting));
    for (const actor of actors) actor.leave();
    const latest = clock.now() + FORGOTTEN_MS;
    const isQuiet = (): boolean => world.gateways.every((gateway) => gateway.unrest === undefined);
    runChecked(world, actors, () => isQuiet() || clock.now() > latest);
    for (const { unrest } of world.gateways) if (unrest !== undefined) findings.report(...unrest);
  } catch (error) {
    findings.report("no bug reported", `${clock.now()}: ${String(error)}`);
  }
  return {
    seed,
    violation: findings.violation,
    fingerprint: world.trace.fingerprint,
    trace: world.trace.lines,
    statements: world.cluster.statementCount,
    counts: world.counts,
  };
}

function createWorld(seed: number, bug: PlantedBug | undefined, isTraced: boolean): SimWorld {
  const clock = new SimClock();
  const random = new SeededRandom(seed);
  const trace = new Trace(() => clock.now(), isTraced);
  const findings = new Findings(trace);
  const names = new Map<number, string>();
  const cluster: SimCluster = new SimCluster({
    clock,
    random,
    trace,
    serverCount: SERVER_COUNT,
    observe: (client, state) => observe(findings, names, client, state),
  });
  const network = new SimNetwork(clock, random, (host, socket) => cluster.accept(host, socket));
  const serverNames = cluster.servers.map(({ name }) => name);
  const gateways = Array.from(
    { length: GATEWAY_COUNT },
    () => new SimGateway({ network, random, classifier, serverNames, findings, bug }),
  );
  return new SimWorld({ clock, random, trace, findings, network, cluster, gateways, names, bug });
}

/** A statement of this client's runs in a session of this state: nothing in it may be another's. */
function observe(
  findings: Findings,
  names: ReadonlyMap<number, string>,
  client: number,
  { applicationName, lockOwner, blockOwner }: SessionState,
): void {
  const wanted = names.get(client) ?? "";
  const found =
    applicationName === wanted ? undefined : `runs as "${applicationName}" and not as "${wanted}"`;
  const lock = lockOwner === undefined || lockOwner === client ? undefined : "has another's lock";
  const block =
    blockOwner === undefined || blockOwner === client ? undefined : "is in another's transaction";
  const problem = found ?? lock ?? block;
  if (problem !== undefined)
    findings.report("no state carried over", `client ${client} ${problem}`);
}

function populate(world: SimWorld, actors: Set<Actor>): void {
  const join = (): void => {
    const client: WireClient = new WireClient(world, world.pick(PROFILES), () => {
      actors.delete(client);
      if (world.isStopping) return;
      join();
    });
    actors.add(client);
    if (world.clock.now() > 0) client.start();
  };
  for (let i = 0; i < WIRE_CLIENT_COUNT; i++) join();
  for (let i = 0; i < CALLER_COUNT; i++) {
    actors.add(new TokenCaller(world, i % 3 === 0 ? UNTRUSTED : TRUSTED));
  }
}

function isWaiting({ waitingSince }: Actor): boolean {
  return waitingSince !== undefined;
}

function runChecked(world: SimWorld, actors: ReadonlySet<Actor>, isOver: () => boolean): void {
  const { clock, findings } = world;
  while (!isOver() && findings.violation === undefined) {
    clock.runUntil(clock.now() + CHECK_EVERY_MS);
    for (const gateway of world.gateways) gateway.checkLimits();
    for (const actor of actors) {
      const since = actor.waitingSince;
      if (since === undefined || clock.now() - since < FORGOTTEN_MS) continue;
      findings.report("no waiter forgotten", `${actor.name} waits since ${since.toFixed(3)}`);
    }
  }
}
