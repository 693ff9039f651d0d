// POST /sql: walgate beside the two handlers that a user could write instead, with the same pool size.
import { startBenchDatabase } from "../bench-database.ts";
import { startUserHandler } from "../contenders/user-handler.ts";
import { startWalgate } from "../contenders/walgate.ts";
import type { HttpLoadMark, HttpLoadPlan } from "../http-load.ts";
import { runLoadProgram } from "../load-program.ts";
import { cpuMicroseconds } from "../process-usage.ts";
import type { Bench, Contender, Sample, Scenario } from "../scenario.ts";
import { median, quantile } from "../statistics.ts";
import { figuresOf } from "../verdict.ts";
import { POOL_SIZE } from "./wire.ts";

const CONNECTION_COUNTS = [1, 32, 256];
const BAR_CONNECTIONS = 32;
const CLIENTS_MAX = 1_000;
const WARM_UP_MS = 1_000;
const HALF = 0.5;
/** Other rows in turn, as pgbench reads them. */
const BODY_COUNT = 1_000;
const BODIES: readonly string[] = Array.from({ length: BODY_COUNT }, (_, index) =>
  JSON.stringify({
    query: "SELECT aid, bid, abalance FROM pgbench_accounts WHERE aid = $1",
    params: [index * 97 + 1],
  }),
);

interface Peer {
  readonly name: string;
  readonly http: string;
  readonly token: string;
  readonly pid: number;
}

export const http: Scenario = {
  columns: [
    { figure: "tps", title: "requests/s", digits: 0 },
    { figure: "cpuUs", title: "CPU µs/request", digits: 1 },
    { figure: "p50Ms", title: "p50 ms", digits: 3 },
    { figure: "p99Ms", title: "p99 ms", digits: 3 },
  ],
  async run(bench) {
    await using stack = new AsyncDisposableStack();
    const database = stack.use(await startBenchDatabase());
    const options = { poolSize: POOL_SIZE, clientsMax: CLIENTS_MAX };
    const peers: readonly Peer[] = [
      { name: "pg handler", ...stack.use(await startUserHandler(database, "pg", POOL_SIZE)) },
      {
        name: "Bun.SQL handler",
        ...stack.use(await startUserHandler(database, "bun-sql", POOL_SIZE)),
      },
      { name: "walgate", ...stack.use(await startWalgate(database, options)) },
      { name: "walgate again", ...stack.use(await startWalgate(database, options)) },
    ];
    bench.note("The handlers compare one bearer secret; walgate verifies a JWT (and caches it).");
    bench.note("At a fixed rate requests leave in bursts of 1 ms.");
    for (const count of CONNECTION_COUNTS) await compareCase(bench, peers, count);
  },
};

async function compareCase(
  bench: Bench,
  peers: readonly Peer[],
  connectionCount: number,
): Promise<void> {
  const name = `POST /sql, ${connectionCount} connections`;
  const control = { subject: "walgate", again: "walgate again" };
  const contenders = (rate?: number): readonly Contender[] =>
    peers.map((peer) => ({
      name: peer.name,
      run: () => runLoad(peer, connectionCount, bench.seconds, rate),
    }));
  const outcome = await bench.compare({
    name,
    contenders: contenders(),
    control,
    bars:
      connectionCount === BAR_CONNECTIONS
        ? [
            {
              figure: "tps",
              subject: "walgate",
              peer: "pg handler",
              bound: "at least",
              limit: 1.2,
            },
          ]
        : [],
  });
  if (outcome === undefined) return;
  const saturation = Math.min(
    ...outcome.contenders.map(({ samples }) => median(figuresOf(samples, "tps"))),
  );
  if (!Number.isFinite(saturation)) return;
  const rate = saturation * HALF;
  const rounds = { min: bench.rounds.min, max: bench.rounds.min };
  const half = `${name}, at ${Math.round(rate)} requests/s`;
  await bench.compare({ name: half, contenders: contenders(rate), control, bars: [] }, rounds);
}

async function runLoad(
  peer: Peer,
  connectionCount: number,
  seconds: number,
  rate: number | undefined,
): Promise<Sample> {
  const plan: HttpLoadPlan = {
    port: Number(new URL(peer.http).port),
    token: peer.token,
    connectionCount,
    seconds,
    warmUpMs: WARM_UP_MS,
    bodies: BODIES,
    marker: '"abalance"',
    ...(rate === undefined ? {} : { rate }),
  };
  const marks: { readonly atMs: number; readonly cpuUs: number }[] = [];
  let result: Extract<HttpLoadMark, { mark: "result" }> | undefined;
  const durationMs = WARM_UP_MS + seconds * 1_000;
  await runLoadProgram({ file: "http-load.ts", plan, durationMs }, (line) => {
    const mark = line as HttpLoadMark;
    if (mark.mark === "result") result = mark;
    else marks.push({ atMs: performance.now(), cpuUs: cpuMicroseconds(peer.pid) });
  });
  const [first, last] = marks;
  if (result === undefined || first === undefined || last === undefined) {
    throw new Error("the load program said nothing");
  }
  const { count, errorCount, firstError, latencies } = result;
  const error = firstError === undefined ? {} : { firstError };
  const figures =
    rate === undefined
      ? {
          tps: (count * 1_000) / (last.atMs - first.atMs),
          cpuUs: (last.cpuUs - first.cpuUs) / count,
        }
      : { p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) };
  return { errorCount, ...error, figures };
}
