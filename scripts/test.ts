// `npm test`: lock, format, SDK build, types, lint, tests. The last line is `N passed, N failed`.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "..");
const TOOLS = join(ROOT, "node_modules/.bin");
/** The Bun that runs this file, whatever other one is on PATH. */
const BUN = process.execPath;
const OTHER_LOCKS = ["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"];
/** Hooks start database clusters, which a loaded machine was seen to need many seconds for. */
const TEST_TIMEOUT_MS = 60_000;
const SEED_LIMIT = 2 ** 31;

interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

interface Step {
  readonly name: string;
  /** The exit code. */
  readonly run: () => Promise<number>;
}

process.exitCode = await main(process.argv.slice(2));

/** Runs every step, also after a failed one, so that one run shows all that is wrong. */
async function main(filters: readonly string[]): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "walgate-junit-"));
  const junit = join(folder, "junit.xml");
  try {
    const failures = new Set<string>();
    for (const step of steps(junit, filters)) {
      const began = performance.now();
      const code = await step.run();
      if (code !== 0) failures.add(step.name);
      const tookMs = Math.round(performance.now() - began);
      console.log(`${code === 0 ? "ok  " : "FAIL"} ${step.name} (${tookMs} ms)`);
    }
    const totals = await readTotals(junit);
    // The report leaves out a test file that could not be loaded; the exit code does not.
    const failed = failures.has("tests") ? Math.max(totals.failed, 1) : totals.failed;
    if (failures.size > 0) console.log(`failed steps: ${[...failures].join(", ")}`);
    const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : "";
    console.log(`${totals.passed} passed, ${failed} failed${skipped}`);
    return failures.size > 0 || failed > 0 || totals.passed === 0 ? 1 : 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function steps(junit: string, filters: readonly string[]): Step[] {
  const seed = Math.floor(Math.random() * SEED_LIMIT);
  return [
    { name: "lock", run: checkLock },
    { name: "format", run: command(BUN, "fmt", "--no-script", "--check") },
    // Before the types: the SDK's own name resolves to what this step builds.
    { name: "sdk build", run: command(join(TOOLS, "tsc"), "-p", "sdk/tsconfig.build.json") },
    { name: "types", run: command(BUN, "check", "--no-script") },
    { name: "lint", run: command(join(TOOLS, "oxlint"), "--type-aware", "--deny-warnings") },
    {
      name: "tests",
      run: async () => {
        console.log(`tests in the order of --seed=${seed}`);
        return command(
          BUN,
          "test",
          `--timeout=${TEST_TIMEOUT_MS}`,
          "--randomize",
          `--seed=${seed}`,
          "--reporter=junit",
          `--reporter-outfile=${junit}`,
          ...filters,
        )();
      },
    },
  ];
}

function command(...line: string[]): () => Promise<number> {
  return () => Bun.spawn(line, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] }).exited;
}

/** One lock file, without addresses. A frozen install accepts a missing one, and a mirror's names. */
async function checkLock(): Promise<number> {
  const problems = OTHER_LOCKS.filter((name) => existsSync(join(ROOT, name))).map(
    (name) => `${name} stands beside bun.lock`,
  );
  const lock = Bun.file(join(ROOT, "bun.lock"));
  if (!(await lock.exists())) problems.push("bun.lock is missing");
  else if ((await lock.text()).includes("://")) problems.push("bun.lock holds addresses");
  for (const problem of problems) console.error(`lock: ${problem}`);
  return problems.length;
}

/** The totals stand in the attributes of <testsuites>. */
async function readTotals(junit: string): Promise<Totals> {
  const file = Bun.file(junit);
  const text = (await file.exists()) ? await file.text() : "";
  const head = /<testsuites\b[^>]*>/.exec(text)?.[0] ?? "";
  const read = (name: string): number =>
    Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head)?.[1] ?? 0);
  const failed = read("failures");
  const skipped = read("skipped");
  return { passed: read("tests") - failed - skipped, failed, skipped };
}
