// Reads the table of processes: a pid alone says nothing, since it may have been given out again.
import { readdir, readFile } from "node:fs/promises";

interface ProcessStat {
  readonly state: string;
  readonly parent: number;
  readonly startTicks: string;
}

/** When a process started, in the system's own notation; undefined when there is none. */
export async function processStart(pid: number): Promise<string | undefined> {
  if (process.platform === "linux") return (await linuxStat(pid))?.startTicks;
  return readPs(["-o", "lstart=", "-p", String(pid)]) || undefined;
}

/** The command line of a process; empty when there is none. */
export async function commandLine(pid: number): Promise<string> {
  if (process.platform !== "linux") return readPs(["-o", "command=", "-p", String(pid)]);
  const text = await readProc(`/proc/${pid}/cmdline`);
  return text.replaceAll("\0", " ");
}

/** Whether a process exists and is not a zombie. */
export async function isAlive(pid: number): Promise<boolean> {
  if (process.platform !== "linux") return (await processStart(pid)) !== undefined;
  const stat = await linuxStat(pid);
  return stat !== undefined && stat.state !== "Z";
}

/** The direct children of a process. */
export async function childPids(parent: number): Promise<number[]> {
  if (process.platform !== "linux") {
    return readPs(["-A", "-o", "pid=,ppid="])
      .split("\n")
      .map((line) => line.trim().split(/\s+/).map(Number))
      .flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []));
  }
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const stats = await Promise.all(pids.map(linuxStat));
  return pids.filter((_, index) => stats[index]?.parent === parent);
}

/** proc(5), /proc/pid/stat: the name in parentheses may itself hold spaces and parentheses. */
async function linuxStat(pid: number): Promise<ProcessStat | undefined> {
  const text = await readProc(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, parent] = fields;
  // Field 22 of the manual's count, which begins two fields earlier.
  const startTicks = fields[19];
  if (state === undefined || parent === undefined || startTicks === undefined) return undefined;
  return { state, parent: Number(parent), startTicks };
}

/** Empty when the process ended meanwhile: ENOENT before the open, ESRCH during the read. */
async function readProc(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH") return "";
    throw error;
  }
}

function readPs(options: readonly string[]): string {
  return Bun.spawnSync(["ps", ...options])
    .stdout.toString()
    .trim();
}
