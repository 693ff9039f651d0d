// Describes the machine and the programs that a figure comes from, without a name that would tell whose it is.
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { runCommand } from "#test/support/command.ts";

export interface Machine {
  readonly processor: string;
  readonly processorCount: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly bun: string;
  readonly pgbench: string;
  readonly pgbouncer: string;
  /** Of the last minute, before the bench began: a busy machine's figures are worth little. */
  readonly loadBefore: number;
}

const GB = 1_024 ** 3;

export async function describeMachine(): Promise<Machine> {
  return {
    processor: cpus()[0]?.model ?? "unknown",
    processorCount: availableParallelism(),
    memoryGb: Math.round(totalmem() / GB),
    kernel: readFileSync("/proc/sys/kernel/osrelease", "utf8").trim().split("-")[0] ?? "",
    bun: Bun.version,
    pgbench: await versionOf("pgbench"),
    pgbouncer: await versionOf("pgbouncer"),
    loadBefore: loadavg()[0] ?? Number.NaN,
  };
}

/** The first line that the program says about its version, or "missing". */
export async function versionOf(name: string): Promise<string> {
  if (Bun.which(name) === null) return "missing";
  const { stdout } = await runCommand([name, "--version"]);
  return /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? "unknown";
}

/** The part of a version before and behind its first dot. */
export function isAtLeast(version: string, major: number, minor: number): boolean {
  const [first = 0, second = 0] = version.split(".").map(Number);
  return first > major || (first === major && second >= minor);
}
