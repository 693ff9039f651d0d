// 10,000 idle wire clients: the memory of each, and what they cost 32 busy ones.
import { type BenchDatabase, startBenchDatabase } from "../bench-database.ts";
import { hasPgbouncer, PGBOUNCER_MISSING, startPgbouncer } from "../contenders/pgbouncer.ts";
import { startWalgate } from "../contenders/walgate.ts";
import type { ChildServer } from "../child-process.ts";
import type { Endpoint } from "../endpoint.ts";
import type { IdleMark, IdlePlan } from "../idle-clients.ts";
import { withFiles } from "../load-program.ts";
import { runSaturated } from "../pgbench.ts";
import { residentBytes } from "../process-usage.ts";
import type { Bench, Sample, Scenario } from "../scenario.ts";
import { POOL_SIZE } from "./wire.ts";

const IDLE_COUNT = 10_000;
const BUSY_COUNT = 32;
/** Both processes have a file for each client, and some for everything else. */
const FILES = IDLE_COUNT + 1_000;
const CLIENTS_MAX = IDLE_COUNT + 500;
/** SCRAM at the client costs a millisecond or more. */
const OPEN_TIMEOUT_MS = 180_000;
/** Garbage of the logins is collected, or not, within this time: then it is resident, and counts. */
const SETTLE_MS = 5_000;
const BYTES_EACH_MAX = 4_096;

export const idle: Scenario = {
  columns: [
    { figure: "bytesEach", title: "bytes/client", digits: 0 },
    { figure: "tpsBefore", title: "busy tps before", digits: 0 },
    { figure: "tps", title: "busy tps beside them", digits: 0 },
    { figure: "kept", title: "kept", digits: 3 },
  ],
  async run(bench) {
    if (!mayOpen(FILES)) {
      bench.note(`not measured: this machine forbids ${FILES} open files (ulimit -n)`);
    }
    await using database = await startBenchDatabase();
    bench.note("Resident memory of the process: what the kernel holds for a socket is outside.");
    const options = { poolSize: POOL_SIZE, clientsMax: CLIENTS_MAX };
    const contenders = [
      { name: "walgate", run: () => measure(bench, () => startWalgate(database, options)) },
      ...(hasPgbouncer() ? [{ name: "pgbouncer", run: () => bouncer(bench, database) }] : []),
    ];
    if (!hasPgbouncer()) bench.note(`not measured: ${PGBOUNCER_MISSING}`);
    await bench.compare({
      name: `${IDLE_COUNT} idle clients`,
      contenders: mayOpen(FILES) ? contenders : [],
      bars: [{ figure: "bytesEach", subject: "walgate", bound: "at most", limit: BYTES_EACH_MAX }],
    });
  },
};

function mayOpen(files: number): boolean {
  return Bun.spawnSync(withFiles(files, ["true"])).exitCode === 0;
}

function bouncer(bench: Bench, database: BenchDatabase): Promise<Sample> {
  const options = {
    poolMode: "transaction",
    poolSize: POOL_SIZE,
    clientsMax: CLIENTS_MAX,
  } as const;
  return measure(bench, () => startPgbouncer(database, options));
}

/** Each round has a fresh process: memory that one round has left behind would make the next one cheap. */
async function measure(
  bench: Bench,
  start: () => Promise<ChildServer & { readonly endpoint: Endpoint }>,
): Promise<Sample> {
  await using server = await start();
  const { pid, endpoint } = server;
  const busy = (): Promise<Sample> =>
    runSaturated({ endpoint, clientCount: BUSY_COUNT, mode: "extended", seconds: bench.seconds });
  const before = await busy();
  if (before.errorCount > 0) return before;
  await Bun.sleep(SETTLE_MS);
  const emptyBytes = residentBytes(pid);
  await using clients = await openIdle({ ...endpoint, count: IDLE_COUNT });
  if (clients.reason !== undefined) {
    return { errorCount: 1, firstError: clients.reason, figures: {} };
  }
  await Bun.sleep(SETTLE_MS);
  const bytesEach = (residentBytes(pid) - emptyBytes) / IDLE_COUNT;
  const beside = await busy();
  if (beside.errorCount > 0) return beside;
  const tpsBefore = before.figures["tps"] ?? Number.NaN;
  const tps = beside.figures["tps"] ?? Number.NaN;
  return { errorCount: 0, figures: { bytesEach, tpsBefore, tps, kept: tps / tpsBefore } };
}

interface IdleClients extends AsyncDisposable {
  /** Why not all are open; undefined when they are. */
  readonly reason: string | undefined;
}

async function openIdle(plan: IdlePlan): Promise<IdleClients> {
  const file = `${import.meta.dir}/../idle-clients.ts`;
  const child = Bun.spawn(withFiles(FILES, [process.execPath, file]), {
    stdin: new TextEncoder().encode(JSON.stringify(plan)),
    stdout: "pipe",
    stderr: "inherit",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), OPEN_TIMEOUT_MS);
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of child.stdout) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes("\n")) break;
  }
  clearTimeout(timer);
  const mark: IdleMark = text.includes("\n")
    ? (JSON.parse(text) as IdleMark)
    : { mark: "failed", reason: "the clients did not open in time" };
  return {
    reason: mark.mark === "failed" ? mark.reason : undefined,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
