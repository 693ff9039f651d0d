// What the operating system says about one process: its CPU time, all threads included, and its resident memory.
import { readFileSync, writeFileSync } from "node:fs";

/** USER_HZ, in which /proc counts CPU time; Linux shows 100 to every program. */
const TICKS_PER_SECOND = 100;
const MICROSECONDS_PER_TICK = 1_000_000 / TICKS_PER_SECOND;
const KB = 1_024;

/** Places of utime and stime behind the command's closing parenthesis, where `state` is 0 (proc(5), /proc/pid/stat). */
const UTIME = 11;
const STIME = 12;

/** User and system time in microseconds, from the text of /proc/PID/stat. The name in it may hold blanks and parentheses. */
export function parseCpuMicroseconds(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[UTIME]) + Number(fields[STIME]);
  if (!Number.isFinite(ticks)) throw new Error("/proc/PID/stat reads otherwise than expected");
  return ticks * MICROSECONDS_PER_TICK;
}

/** A line of /proc/PID/status that is given in kB, in bytes. */
export function parseStatusBytes(status: string, name: "VmRSS" | "VmHWM"): number {
  const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1];
  if (kilobytes === undefined) throw new Error(`/proc/PID/status has no ${name}`);
  return Number(kilobytes) * KB;
}

export function cpuMicroseconds(pid: number): number {
  return parseCpuMicroseconds(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

export function residentBytes(pid: number): number {
  return parseStatusBytes(readFileSync(`/proc/${pid}/status`, "utf8"), "VmRSS");
}

/** The most since the start, or since `resetPeakBytes`. */
export function peakBytes(pid: number): number {
  return parseStatusBytes(readFileSync(`/proc/${pid}/status`, "utf8"), "VmHWM");
}

/** proc(5), /proc/pid/clear_refs: 5 sets the peak to what is resident now. */
export function resetPeakBytes(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
