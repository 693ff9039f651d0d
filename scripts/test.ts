// `npm test`: lock, format, SDK build, types, lint, tests. The last line is `N passed, N failed`.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buildSdk } from "./build-sdk.ts";

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

/** Runs every step, also after a failed one, so that one run shows all that is wrong. */
async function main(filters: readonly string[]): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "walgate-junit-"));
  try {
    const failures = new Set<string>();
    for (const step of await steps(folder, filters)) {
      const began = performance.now();
      const code = await step.run();
      if (code !== 0) failures.add(step.name);
      const tookMs = Math.round(performance.now() - began);
      console.log(`${code === 0 ? "ok  " : "FAIL"} ${step.name} (${tookMs} ms)`);
    }
    const totals = await readTotals(folder);
    // The report leaves out a test file that could not be loaded; the exit code does not.
    const isBroken = TEST_STEPS.some((name) => failures.has(name));
    const failed = isBroken ? Math.max(totals.failed, 1) : totals.failed;
    if (failures.size > 0) console.log(`failed steps: ${[...failures].join(", ")}`);
    const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : "";
    console.log(`${totals.passed} passed, ${failed} failed${skipped}`);
    return failures.size > 0 || failed > 0 || totals.passed === 0 ? 1 : 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function steps(folder: string, filters: readonly string[]): Promise<Step[]> {
  return [
    { name: "lock", run: checkLock },
    { name: "format", run: command(BUN, "fmt", "--no-script", "--check") },
    // Before the types: the SDK's own name resolves to what this step builds.
    { name: "sdk build", run: async () => ((await buildSdk()) ? 0 : 1) },
    { name: "types", run: command(BUN, "check", "--no-script") },
    { name: "lint", run: command(join(TOOLS, "oxlint"), "--type-aware", "--deny-warnings") },
    ...(await testSteps(folder, filters)),
  ];
}

/** Folders whose tests share nothing, so that they run in any order. */
const PURE_FOLDERS: ReadonlySet<string> = new Set(["unit", "property", "tidy", "sdk"]);
const TEST_STEPS = ["tests", "tests on real servers"] as const;

/** Tests on real servers run in the order of their file, since they share a cluster and some of them break it on purpose. */
async function testSteps(folder: string, filters: readonly string[]): Promise<Step[]> {
  const run = (name: string, paths: readonly string[], ...options: string[]): Step => ({
    name,
    run: command(
      BUN,
      "test",
      `--timeout=${TEST_TIMEOUT_MS}`,
      "--reporter=junit",
      `--reporter-outfile=${join(folder, `${name}.xml`)}`,
      ...options,
      ...paths,
    ),
  });
  const [pure, real] = TEST_STEPS;
  if (filters.length > 0) return [run(pure, filters)];
  const folders = await testFolders();
  const seed = Math.floor(Math.random() * SEED_LIMIT);
  console.log(`unit tests in the order of --seed=${seed}`);
  return [
    run(
      pure,
      folders.filter((name) => PURE_FOLDERS.has(name)).map(toPath),
      "--randomize",
      `--seed=${seed}`,
    ),
    run(real, folders.filter((name) => !PURE_FOLDERS.has(name)).map(toPath)),
  ];
}

/** As a path, so that it is no filter by a part of a name. */
function toPath(folder: string): string {
  return `./test/${folder}/`;
}

/** Every folder below test/ with tests in it: a new one is run without being named here. */
async function testFolders(): Promise<string[]> {
  const names = new Set<string>();
  for await (const path of new Bun.Glob("*/**/*.test.ts").scan(join(ROOT, "test"))) {
    names.add(path.split("/")[0] ?? "");
  }
  return [...names].toSorted();
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

/** The totals stand in the attributes of <testsuites>, in one report for each step. */
async function readTotals(folder: string): Promise<Totals> {
  const totals = { passed: 0, failed: 0, skipped: 0 };
  for (const name of TEST_STEPS) {
    const file = Bun.file(join(folder, `${name}.xml`));
    const text = (await file.exists()) ? await file.text() : "";
    const head = /<testsuites\b[^>]*>/.exec(text)?.[0] ?? "";
    const read = (attribute: string): number =>
      Number(new RegExp(`\\b${attribute}="(\\d+)"`).exec(head)?.[1] ?? 0);
    const [failed, skipped] = [read("failures"), read("skipped")];
    totals.failed += failed;
    totals.skipped += skipped;
    totals.passed += read("tests") - failed - skipped;
  }
  return totals;
}

process.exitCode = await main(process.argv.slice(2));
