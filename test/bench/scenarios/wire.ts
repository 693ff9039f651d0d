// pgbench -S over the wire: PostgreSQL directly, PgBouncer, walgate, and walgate again as the control.
import { type BenchDatabase, startBenchDatabase } from "../bench-database.ts";
import {
  hasPgbouncer,
  PGBOUNCER_MISSING,
  type Pgbouncer,
  startPgbouncer,
} from "../contenders/pgbouncer.ts";
import { startWalgate } from "../contenders/walgate.ts";
import { directEndpoint, type Endpoint } from "../endpoint.ts";
import { isAtLeast, versionOf } from "../machine.ts";
import { type QueryMode, runAtRate, runSaturated } from "../pgbench.ts";
import type {
  Bar,
  Bench,
  ComparisonOutcome,
  Contender,
  PlotSeries,
  Sample,
  Scenario,
} from "../scenario.ts";
import { median } from "../statistics.ts";
import { figuresOf } from "../verdict.ts";

/** PgBouncer's default, and ours. */
export const POOL_SIZE = 20;
const CLIENTS_MAX = 1_000;
const CLIENT_COUNTS = [1, 32, 256];
const MODES: readonly QueryMode[] = ["simple", "extended", "prepared"];
/** The number of clients that bars and curves are about. */
const BAR_CLIENTS = 32;
/** Shares of saturation that the curve is measured at. */
const LOADS = [0.1, 0.25, 0.5, 0.75, 0.9];
const HALF = 0.5;
/** The first PgBouncer that keeps prepared statements in transaction mode. */
const PREPARED_SINCE = [1, 21] as const;
const MAX_PREPARED_STATEMENTS = 200;

interface Peer {
  readonly name: string;
  readonly endpoint: Endpoint;
  readonly pid?: number;
}

type PeersOf = (mode: QueryMode, clientCount: number) => readonly Peer[];

export const wire: Scenario = {
  columns: [
    { figure: "tps", title: "tps", digits: 0 },
    { figure: "cpuUs", title: "CPU µs/query", digits: 1 },
    { figure: "p50Ms", title: "p50 ms", digits: 3 },
    { figure: "p99Ms", title: "p99 ms", digits: 3 },
  ],
  async run(bench) {
    await using stack = new AsyncDisposableStack();
    const database = stack.use(await startBenchDatabase());
    const options = { poolSize: POOL_SIZE, clientsMax: CLIENTS_MAX };
    const walgate = stack.use(await startWalgate(database, options));
    const again = stack.use(await startWalgate(database, options));
    const bouncers = await startBouncers(database, stack, bench);
    const peersOf: PeersOf = (mode, clientCount) => [
      { name: "direct", endpoint: directEndpoint(database.cluster) },
      ...bouncers(mode, clientCount),
      { name: "walgate", ...walgate },
      { name: "walgate again", ...again },
    ];
    bench.note("walgate has the primary alone: a replica would be another machine's help.");
    for (const mode of MODES) {
      for (const clientCount of CLIENT_COUNTS) await compareCase(bench, peersOf, mode, clientCount);
    }
  },
};

/** One PgBouncer in transaction mode; for prepared statements before 1.21 one in session mode, with a server for each client. */
async function startBouncers(
  database: BenchDatabase,
  stack: AsyncDisposableStack,
  bench: Bench,
): Promise<PeersOf> {
  if (!hasPgbouncer()) {
    bench.note(`not measured: ${PGBOUNCER_MISSING}`);
    return () => [];
  }
  const keepsPrepared = isAtLeast(await versionOf("pgbouncer"), ...PREPARED_SINCE);
  const start = async (poolMode: "transaction" | "session"): Promise<Pgbouncer> =>
    stack.use(
      await startPgbouncer(database, {
        poolMode,
        poolSize: poolMode === "transaction" ? POOL_SIZE : BAR_CLIENTS,
        clientsMax: CLIENTS_MAX,
        ...(keepsPrepared ? { maxPreparedStatements: MAX_PREPARED_STATEMENTS } : {}),
      }),
    );
  const transaction = await start("transaction");
  if (keepsPrepared) return () => [{ name: "pgbouncer", ...transaction }];
  const session = await start("session");
  bench.note(
    `PgBouncer before 1.21 is in session mode for prepared statements, with ${BAR_CLIENTS} servers and at up to ${BAR_CLIENTS} clients.`,
  );
  return (mode, clientCount) => {
    if (mode !== "prepared") return [{ name: "pgbouncer", ...transaction }];
    return clientCount > BAR_CLIENTS ? [] : [{ name: "pgbouncer", ...session }];
  };
}

async function compareCase(
  bench: Bench,
  peersOf: PeersOf,
  mode: QueryMode,
  clientCount: number,
): Promise<void> {
  const name = `${mode}, ${clientCount} clients`;
  const peers = peersOf(mode, clientCount);
  const control = { subject: "walgate", again: "walgate again" };
  const run = (measure: (peer: Peer) => Promise<Sample>): readonly Contender[] =>
    peers.map((peer) => ({ name: peer.name, run: () => measure(peer) }));
  const base = { clientCount, mode, seconds: bench.seconds };
  const outcome = await bench.compare({
    name,
    contenders: run((peer) => runSaturated({ ...base, ...peer })),
    control,
    bars: clientCount === BAR_CLIENTS ? BARS : [],
    missing: hasPgbouncer() ? [] : [{ peer: "pgbouncer", reason: PGBOUNCER_MISSING }],
  });
  if (outcome === undefined) return;
  // The same load for all, which the slowest still carries with ease.
  const saturation = slowest(outcome);
  if (!Number.isFinite(saturation)) return;
  const at = (share: number): readonly Contender[] =>
    run((peer) => runAtRate({ ...base, ...peer }, saturation * share));
  const half = `${name}, at ${Math.round(saturation * HALF)} tps`;
  // No bar depends on it: more rounds would decide nothing.
  const rounds = { min: bench.rounds.min, max: bench.rounds.min };
  await bench.compare({ name: half, contenders: at(HALF), control, bars: [] }, rounds);
  if (clientCount !== BAR_CLIENTS || bench.isCheck) return;
  await plotCurve(
    bench,
    name,
    LOADS.map((share) => ({ rate: saturation * share, contenders: at(share) })),
  );
}

async function plotCurve(
  bench: Bench,
  name: string,
  loads: readonly { readonly rate: number; readonly contenders: readonly Contender[] }[],
): Promise<void> {
  const series = new Map<string, { readonly x: number; readonly y: number }[]>();
  for (const { rate, contenders } of loads) {
    bench.log(`${name}: curve at ${Math.round(rate)} tps`);
    for (const contender of contenders) {
      const { errorCount, figures } = await contender.run();
      const y = figures["p99Ms"];
      if (errorCount > 0 || y === undefined) continue;
      const points = series.get(contender.name) ?? [];
      points.push({ x: rate, y });
      series.set(contender.name, points);
    }
  }
  const lines: readonly PlotSeries[] = [...series].map(([line, points]) => ({
    name: line,
    points,
  }));
  bench.plot({ title: name, xTitle: "transactions per second", yTitle: "p99 ms", series: lines });
}

function slowest(outcome: ComparisonOutcome): number {
  return Math.min(...outcome.contenders.map(({ samples }) => median(figuresOf(samples, "tps"))));
}

const BARS: readonly Bar[] = [
  { figure: "tps", subject: "walgate", peer: "pgbouncer", bound: "at least", limit: 0.85 },
  { figure: "cpuUs", subject: "walgate", peer: "pgbouncer", bound: "at most", limit: 1.3 },
];
