// Drives pgbench and reads what it prints. Rates come from its progress lines, so that logins and the first second are outside.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Endpoint, libpqEnvironment } from "./endpoint.ts";
import { cpuMicroseconds } from "./process-usage.ts";
import type { Sample } from "./scenario.ts";
import { quantile } from "./statistics.ts";

export type QueryMode = "simple" | "extended" | "prepared";

export interface PgbenchOptions {
  readonly endpoint: Endpoint;
  readonly clientCount: number;
  readonly mode: QueryMode;
  readonly seconds: number;
  /** Whose CPU time is read; absent for PostgreSQL itself, which is many processes. */
  readonly pid?: number | undefined;
}

export interface ProgressLine {
  /** Seconds since 1970, with milliseconds. */
  readonly atS: number;
  readonly tps: number;
}

/** A line such as `progress: 1764547200.123 s, 30512.4 tps, lat 1.046 ms stddev 0.2, 0 failed`. */
export function parseProgress(line: string): ProgressLine | undefined {
  const match = /^progress: (\d+\.\d+) s, (\d+(?:\.\d+)?) tps,/.exec(line);
  return match === null ? undefined : { atS: Number(match[1]), tps: Number(match[2]) };
}

/** Transactions between the first and the last line over the time between them; NaN for fewer than two. */
export function rateBetween(lines: readonly ProgressLine[]): number {
  const first = lines[0];
  const last = lines.at(-1);
  if (first === undefined || last === undefined || lines.length < 2) return Number.NaN;
  let count = 0;
  for (const [index, line] of lines.entries()) {
    const before = lines[index - 1];
    if (before !== undefined) count += line.tps * (line.atS - before.atS);
  }
  return count / (last.atS - first.atS);
}

export interface PgbenchErrors {
  readonly errorCount: number;
  readonly firstError?: string;
}

/**
 * Failed transactions, and everything on stderr that is neither progress nor the tool's banner; a bad exit code counts even if
 * nothing was said.
 */
export function parseErrors(stdout: string, stderr: string, exitCode: number): PgbenchErrors {
  const failed = Number(/^number of failed transactions: (\d+) /m.exec(stdout)?.[1] ?? 0);
  const lines = stderr
    .split("\n")
    .filter((line) => line !== "" && !/^(?:progress: |pgbench \()/.test(line));
  const errorCount = failed + lines.length;
  const firstError = lines[0] ?? (failed > 0 ? "failed transactions" : undefined);
  if (errorCount === 0 && exitCode !== 0) {
    return { errorCount: 1, firstError: `pgbench exited with ${exitCode}` };
  }
  return firstError === undefined ? { errorCount } : { errorCount, firstError };
}

/** Milliseconds of each transaction in a log of `-l`, the wait for its turn under `-R` included; those that began before `fromS` are left out. */
export function parseLatencies(log: string, fromS: number): number[] {
  const latencies: number[] = [];
  for (const line of log.split("\n")) {
    // client, number, microseconds, script, seconds and microseconds at its end, and under -R the lag.
    const [, , tookUs, , atS] = line.split(" ");
    if (tookUs === undefined || atS === undefined || Number(atS) < fromS) continue;
    latencies.push(Number(tookUs) / 1_000);
  }
  return latencies;
}

/** As many transactions as possible: `tps`, and `cpuUs` per transaction when there is a process to read. */
export function runSaturated(options: PgbenchOptions): Promise<Sample> {
  return measureRate(options, []);
}

/** As `runSaturated`, with a new connection for each transaction. */
export function runLogins(options: PgbenchOptions): Promise<Sample> {
  return measureRate(options, ["-C"]);
}

async function measureRate(options: PgbenchOptions, words: readonly string[]): Promise<Sample> {
  const lines: ProgressLine[] = [];
  const marks: { readonly atMs: number; readonly cpuUs: number }[] = [];
  const { pid } = options;
  const result = await runPgbench(options, words, (line) => {
    // One line for each second, the first of which ends the warm-up.
    if (lines.length > options.seconds) return;
    lines.push(line);
    if (pid !== undefined) marks.push({ atMs: performance.now(), cpuUs: cpuMicroseconds(pid) });
  });
  const tps = rateBetween(lines);
  const [first, last] = [marks[0], marks.at(-1)];
  if (first === undefined || last === undefined) return { ...result, figures: { tps } };
  const transactions = (tps * (last.atMs - first.atMs)) / 1_000;
  return { ...result, figures: { tps, cpuUs: (last.cpuUs - first.cpuUs) / transactions } };
}

/** A fixed rate, each transaction at a random moment whether or not the one before is done: `p50Ms` and `p99Ms`. */
export async function runAtRate(options: PgbenchOptions, rate: number): Promise<Sample> {
  const folder = await mkdtemp(join(tmpdir(), "walgate-pgbench-"));
  try {
    const words = ["-R", rate.toFixed(3), "-l", "--log-prefix", join(folder, "log")];
    let firstS: number | undefined;
    const result = await runPgbench(options, words, (line) => (firstS ??= line.atS));
    const latencies: number[] = [];
    for (const name of await readdir(folder)) {
      const log = await Bun.file(join(folder, name)).text();
      for (const latency of parseLatencies(log, firstS ?? 0)) latencies.push(latency);
    }
    const figures = { p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) };
    return { ...result, figures };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Seconds before the measured ones, and after them, so that the last progress line does not fall behind the end. */
const MARGIN_SECONDS = 2;
/** Logins and the end of a run; what takes longer hangs. */
const GRACE_MS = 60_000;

async function runPgbench(
  { endpoint, clientCount, mode, seconds }: PgbenchOptions,
  words: readonly string[],
  onProgress: (line: ProgressLine) => void,
): Promise<PgbenchErrors> {
  const durationS = seconds + MARGIN_SECONDS;
  const child = Bun.spawn(
    // pgbench -S: one row by its key.
    [
      "pgbench",
      "-n",
      "-S",
      "-M",
      mode,
      "-c",
      String(clientCount),
      "-j",
      "1",
      "-T",
      String(durationS),
      "-P",
      "1",
      "--progress-timestamp",
      ...words,
    ],
    {
      env: { ...Bun.env, LC_ALL: "C", ...libpqEnvironment(endpoint) },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: durationS * 1_000 + GRACE_MS,
    },
  );
  const stdout = new Response(child.stdout).text();
  const decoder = new TextDecoder();
  let stderr = "";
  let seenTo = 0;
  for await (const bytes of child.stderr) {
    stderr += decoder.decode(bytes, { stream: true });
    for (let end = stderr.indexOf("\n", seenTo); end >= 0; end = stderr.indexOf("\n", seenTo)) {
      const line = parseProgress(stderr.slice(seenTo, end));
      if (line !== undefined) onProgress(line);
      seenTo = end + 1;
    }
  }
  return parseErrors(await stdout, stderr, await child.exited);
}
