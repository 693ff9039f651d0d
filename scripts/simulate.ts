// `bun run simulate --seeds N`: runs the simulation for fresh seeds, or one seed again. Exit codes: 0 no violation, 1 one was found, 2 misuse.
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { PLANTED_BUGS, type PlantedBug } from "#test/simulation/planted-bugs.ts";
import { replayLine } from "#test/simulation/report.ts";
import { simulate } from "#test/simulation/simulation.ts";

const TRACES = resolve(import.meta.dir, "../.data/simulation");
const SEED_LIMIT = 2 ** 31;
const REPORT_EVERY = 50;
const EXIT_MISUSE = 2;
const MS_PER_MINUTE = 60_000;
/** The collector of every job runs half as often, and takes a tenth of the machine less. */
const ROOMY_HEAP = { BUN_JSC_largeHeapSize: "400000000" };
const USAGE = `simulate --seeds N | --seed N

  --seeds N     so many fresh seeds, one after the other
  --from N      the first of them, default a random one
  --jobs N      in so many processes, default 1
  --seed N      one seed, its trace written to .data/simulation
  --bug NAME    with a planted bug: ${PLANTED_BUGS.map(({ name }) => name).join(", ")}
  --trace       the trace on standard output
`;

interface CommandLine {
  readonly from: number;
  readonly count: number;
  readonly jobs: number;
  readonly bug: PlantedBug | undefined;
  readonly isTraced: boolean;
}

// Not by process.exit(), which would cut off what a pipe has not taken yet.
process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const commandLine = parse(args);
  if (typeof commandLine === "string") {
    process.stderr.write(`${commandLine}\n\n${USAGE}`);
    return EXIT_MISUSE;
  }
  return commandLine.jobs > 1 ? runJobs(commandLine) : runSeeds(commandLine);
}

async function runSeeds({ from, count, bug, isTraced }: CommandLine): Promise<number> {
  await loadStatementParser();
  // Nobody reads where an error was made unless its seed is run again.
  if (count > 1) Error.stackTraceLimit = 0;
  const startedAt = performance.now();
  const totals = { statements: 0, requests: 0, tokenReads: 0, replicaReads: 0, faults: 0 };
  let failed = 0;
  print(`seeds from ${from}`);
  for (let seed = from; seed < from + count; seed++) {
    const result = simulate({ seed, bug });
    totals.statements += result.statements;
    for (const key of ["requests", "tokenReads", "replicaReads", "faults"] as const) {
      totals[key] += result.counts[key];
    }
    if (result.violation !== undefined) {
      failed++;
      print(`seed ${seed}: ${result.violation.invariant}: ${result.violation.detail}`);
      print(replayLine(seed, bug));
    }
    if (count === 1 || result.violation !== undefined) await writeTrace(seed, bug, isTraced);
    const done = seed - from + 1;
    if (done % REPORT_EVERY === 0 || done === count) {
      const perMinute = (done * MS_PER_MINUTE) / (performance.now() - startedAt);
      print(`${done} seeds, ${failed} violations, ${Math.round(perMinute)} a minute`);
    }
  }
  print(JSON.stringify(totals));
  return failed > 0 ? 1 : 0;
}

/** Again, since only a trace that somebody reads is worth keeping. */
async function writeTrace(
  seed: number,
  bug: PlantedBug | undefined,
  isShown: boolean,
): Promise<void> {
  const { trace, fingerprint } = simulate({ seed, bug, isTraced: true });
  const text = trace?.join("") ?? "";
  if (isShown) process.stdout.write(text);
  const path = `${TRACES}/${seed}.txt`;
  await Bun.write(path, text);
  print(`trace ${fingerprint}: ${path}`);
}

async function runJobs({ from, count, jobs, bug }: CommandLine): Promise<number> {
  const share = Math.ceil(count / jobs);
  const children = Array.from({ length: jobs }, (_, job) => {
    const first = from + job * share;
    const own = Math.min(share, from + count - first);
    const words = ["--seeds", String(own), "--from", String(first)];
    if (bug !== undefined) words.push("--bug", bug.name);
    return Bun.spawn([process.execPath, import.meta.path, ...words], {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...Bun.env, ...ROOMY_HEAP },
    });
  });
  const codes = await Promise.all(children.map(({ exited }) => exited));
  return Math.max(...codes);
}

/** What to do, or what is wrong with the arguments. */
function parse(args: readonly string[]): CommandLine | string {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        seeds: { type: "string" },
        from: { type: "string" },
        jobs: { type: "string", default: "1" },
        seed: { type: "string" },
        bug: { type: "string" },
        trace: { type: "boolean", default: false },
      },
    }));
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  const bug = PLANTED_BUGS.find(({ name }) => name === values.bug);
  if (values.bug !== undefined && bug === undefined) return `no bug is called "${values.bug}"`;
  if ((values.seeds === undefined) === (values.seed === undefined)) {
    return "give --seeds or --seed";
  }
  const from = values.seed ?? values.from ?? String(Math.floor(Math.random() * SEED_LIMIT));
  const numbers = [from, values.seeds ?? "1", values.jobs].map(Number);
  const [first = 0, count = 0, jobs = 0] = numbers;
  if (!numbers.every((number) => Number.isInteger(number) && number >= 0)) {
    return "seeds and jobs are whole numbers";
  }
  if (count < 1 || jobs < 1 || jobs > count) return "jobs are at least 1 and at most --seeds";
  return { from: first, count, jobs, bug, isTraced: values.trace };
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
