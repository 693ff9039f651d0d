// Reads the texts that Linux gives about a process.
import { expect, test } from "bun:test";
import { parseCpuMicroseconds, parseStatusBytes } from "#test/bench/process-usage.ts";

test("CPU time is user and system time, whatever the program is called", () => {
  const stat =
    "4711 (a) b (c) S 1 4711 4711 0 -1 4194304 5000 0 0 0 123 45 0 0 20 0 12 0 800000 1000000 2000";

  expect(parseCpuMicroseconds(stat)).toBe((123 + 45) * 10_000);
});

test("a text of another shape is refused", () => {
  expect(() => parseCpuMicroseconds("4711 (bun) S 1")).toThrow("otherwise than expected");
  expect(() => parseStatusBytes("Name:\tbun\n", "VmRSS")).toThrow("no VmRSS");
});

test("resident memory and its peak are read in bytes", () => {
  const status = "Name:\tbun\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n";

  expect(parseStatusBytes(status, "VmRSS")).toBe(10 * 1_024 ** 2);
  expect(parseStatusBytes(status, "VmHWM")).toBe(20 * 1_024 ** 2);
});
