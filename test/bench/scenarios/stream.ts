// One result of 1 GB through each door that streams: how fast, and how much memory it takes on its way.
import { startBenchDatabase } from "../bench-database.ts";
import { hasPgbouncer, PGBOUNCER_MISSING, startPgbouncer } from "../contenders/pgbouncer.ts";
import { startWalgate } from "../contenders/walgate.ts";
import { directEndpoint } from "../endpoint.ts";
import { runLoadProgram } from "../load-program.ts";
import { cpuMicroseconds, peakBytes, residentBytes, resetPeakBytes } from "../process-usage.ts";
import type { Contender, Sample, Scenario } from "../scenario.ts";
import type { StreamMark, StreamPlan } from "../stream-client.ts";
import { POOL_SIZE } from "./wire.ts";

const MB = 1_000_000;
const GROWTH_BYTES_MAX = 32 * 1_024 ** 2;
const ROW_COUNT = 1_000_000;
/** A row of 1,000 characters: 1.01 GB with the frames. */
const CHARACTERS = 1_000;
/** Compiles and opens everything once; small against what is measured. */
const WARM_UP_ROWS = 1_000;
const CLIENTS_MAX = 100;
/** A hundredth of the speed that is usual. */
const TIMEOUT_MS = 300_000;

const sqlFor = (rows: number): string =>
  `SELECT repeat('x', ${CHARACTERS}) FROM generate_series(1, ${rows})`;

type Target = Omit<StreamPlan, "sql"> & { readonly pid?: number };

export const stream: Scenario = {
  columns: [
    { figure: "mbPerS", title: "MB/s", digits: 0 },
    { figure: "cpuMsPerMb", title: "CPU ms/MB", digits: 2 },
    { figure: "growthBytes", title: "peak growth, bytes", digits: 0 },
  ],
  async run(bench) {
    await using database = await startBenchDatabase();
    const options = { poolSize: POOL_SIZE, clientsMax: CLIENTS_MAX };
    const { password, ...direct } = directEndpoint(database.cluster);
    const wire = { door: "wire", secret: password } as const;
    const contenders: Contender[] = [
      { name: "direct", run: () => measure({ ...direct, ...wire }) },
      {
        name: "walgate wire",
        async run() {
          await using walgate = await startWalgate(database, options);
          return await measure({ ...walgate.endpoint, ...wire, pid: walgate.pid });
        },
      },
      {
        name: "walgate /v2",
        async run() {
          await using walgate = await startWalgate(database, options);
          const port = Number(new URL(walgate.http).port);
          const { pid, token } = walgate;
          return await measure({ door: "websocket", port, user: "app", secret: token, pid });
        },
      },
    ];
    if (hasPgbouncer()) {
      contenders.push({
        name: "pgbouncer",
        async run() {
          const settings = { poolMode: "transaction", ...options } as const;
          await using bouncer = await startPgbouncer(database, settings);
          return await measure({ ...bouncer.endpoint, ...wire, pid: bouncer.pid });
        },
      });
    } else bench.note(`not measured: ${PGBOUNCER_MISSING}`);
    bench.note("POST /sql is left out: its answers are whole in memory, up to max_response_body.");
    const bar = { figure: "growthBytes", bound: "at most", limit: GROWTH_BYTES_MAX } as const;
    await bench.compare({
      name: "1 GB result",
      contenders,
      bars: [
        { ...bar, subject: "walgate wire" },
        { ...bar, subject: "walgate /v2" },
      ],
    });
  },
};

/** Growth is what the process needs beyond what was resident before the large result. */
async function measure(target: Target): Promise<Sample> {
  const { pid, ...plan } = target;
  const warmUp = await read({ ...plan, sql: sqlFor(WARM_UP_ROWS) });
  if (warmUp.mark === "failed") return { errorCount: 1, firstError: warmUp.reason, figures: {} };
  if (pid !== undefined) resetPeakBytes(pid);
  const before =
    pid === undefined ? undefined : { rss: residentBytes(pid), cpu: cpuMicroseconds(pid) };
  const result = await read({ ...plan, sql: sqlFor(ROW_COUNT) });
  if (result.mark === "failed") return { errorCount: 1, firstError: result.reason, figures: {} };
  if (result.rowCount !== ROW_COUNT) {
    return { errorCount: 1, firstError: `${result.rowCount} rows came`, figures: {} };
  }
  const megabytes = result.bytes / MB;
  const mbPerS = megabytes / (result.tookMs / 1_000);
  if (pid === undefined || before === undefined) return { errorCount: 0, figures: { mbPerS } };
  const growthBytes = peakBytes(pid) - before.rss;
  const cpuMsPerMb = (cpuMicroseconds(pid) - before.cpu) / 1_000 / megabytes;
  return { errorCount: 0, figures: { mbPerS, cpuMsPerMb, growthBytes } };
}

async function read(plan: StreamPlan): Promise<StreamMark> {
  let mark: StreamMark = { mark: "failed", reason: "the client said nothing" };
  await runLoadProgram({ file: "stream-client.ts", plan, durationMs: TIMEOUT_MS }, (line) => {
    mark = line as StreamMark;
  });
  return mark;
}
