// The command line, as somebody uses it who replays a seed.
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { resolve } from "node:path";

const SCRIPT = resolve(import.meta.dir, "../../scripts/simulate.ts");
const TRACE = resolve(import.meta.dir, "../../.data/simulation/7.txt");

test("a trace that goes into a pipe is whole, and the same as the one that is kept", async () => {
  // A reader that is slower than the writer: the pipe holds 64 KB of some 800.
  const command = `"${process.execPath}" "${SCRIPT}" --seed 7 --trace | (sleep 1; cat)`;
  const run = Bun.spawn(["sh", "-c", command], { stdout: "pipe", stderr: "inherit" });
  const printed = await run.stdout.text();
  const kept = await Bun.file(TRACE).text();
  rmSync(TRACE);

  expect(kept.length).toBeGreaterThan(200_000);
  expect(printed.includes(kept)).toBe(true);
  expect(printed.slice(printed.indexOf(kept) + kept.length)).toContain("1 seeds, 0 violations");
}, 30_000);
