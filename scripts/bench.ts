// `bun run bench wire|http|idle|stream|login`: measures walgate beside what it is compared with. Exit codes: 0 holds, 1 missed or errors, 2 not decided or not measured.
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine } from "#test/bench/machine.ts";
import { formatComparison, formatMachine, writeReport } from "#test/bench/report.ts";
import { runRounds } from "#test/bench/rounds.ts";
import type { BenchOptions, ComparisonOutcome, Plot, Scenario } from "#test/bench/scenario.ts";
import { http } from "#test/bench/scenarios/http.ts";
import { idle } from "#test/bench/scenarios/idle.ts";
import { login } from "#test/bench/scenarios/login.ts";
import { stream } from "#test/bench/scenarios/stream.ts";
import { wire } from "#test/bench/scenarios/wire.ts";
import { exitCodeOf } from "#test/bench/verdict.ts";

const SCENARIOS: Readonly<Record<string, Scenario>> = { wire, http, idle, stream, login };
const RESULTS = resolve(import.meta.dir, "../.data/bench");

/** Fewer cannot tell a median from noise. */
const ROUNDS_MIN = 7;
/** What 30 rounds cannot decide is too close to call on this machine. */
const ROUNDS_MAX = 30;
const SECONDS_DEFAULT = 5;

const EXIT_MISUSE = 2;
const USAGE = `bench ${Object.keys(SCENARIOS).join("|")} [--check] [--rounds N] [--seconds S] [--only TEXT]

  --check      judge the bars, and leave out what has none: exit 1 below one, 2 when one is undecided or not measured
  --rounds N   rounds of each comparison, default ${ROUNDS_MIN}; with --check at least that, and up to ${ROUNDS_MAX} where they are needed
  --seconds S  measured seconds of one run, default ${SECONDS_DEFAULT}
  --only TEXT  only comparisons whose name contains TEXT, such as "prepared, 32 clients"
`;

process.exit(await main(process.argv.slice(2)));

async function main(args: readonly string[]): Promise<number> {
  const commandLine = parse(args);
  if (typeof commandLine === "string") {
    process.stderr.write(`${commandLine}\n\n${USAGE}`);
    return EXIT_MISUSE;
  }
  const { name, scenario, options } = commandLine;
  if (Bun.which("pgbench") === null) {
    process.stdout.write("not measured: pgbench is not on the path (Debian: postgresql-15)\n");
    return 2;
  }
  const machine = await describeMachine();
  const comparisons: ComparisonOutcome[] = [];
  const plots: Plot[] = [];
  const notes: string[] = [];
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  print(formatMachine(machine));
  const wants = (text: string): boolean =>
    options.only === undefined || text.includes(options.only);
  await scenario.run({
    ...options,
    wants,
    compare: async (comparison, rounds = options.rounds) => {
      const isUnjudged = options.isCheck && comparison.bars.length === 0;
      if (isUnjudged || !wants(comparison.name)) return undefined;
      const outcome = await runRounds(comparison, rounds, Math.random, options.log);
      comparisons.push(outcome);
      print(`\n${formatComparison(outcome, scenario.columns)}`);
      return outcome;
    },
    plot: (plot) => void plots.push(plot),
    note: (text) => {
      notes.push(text);
      print(text);
    },
  });
  const { columns } = scenario;
  const { seconds } = options;
  const report = { scenario: name, machine, seconds, columns, comparisons, plots, notes };
  for (const path of await writeReport(RESULTS, report)) print(`written: ${path}`);
  return exitCodeOf(comparisons, options.isCheck);
}

interface CommandLine {
  readonly name: string;
  readonly scenario: Scenario;
  readonly options: BenchOptions;
}

/** What to do, or what is wrong with the arguments. */
function parse(args: readonly string[]): CommandLine | string {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        check: { type: "boolean", default: false },
        rounds: { type: "string", default: String(ROUNDS_MIN) },
        seconds: { type: "string", default: String(SECONDS_DEFAULT) },
        only: { type: "string" },
      },
    });
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  const { values, positionals } = parsed;
  const [name = "", ...extra] = positionals;
  const scenario = Object.hasOwn(SCENARIOS, name) ? SCENARIOS[name] : undefined;
  if (scenario === undefined || extra.length > 0) return "name one bench";
  const rounds = Number(values.rounds);
  const seconds = Number(values.seconds);
  if (!Number.isInteger(rounds) || rounds < 1) return "--rounds is a positive integer";
  if (!Number.isInteger(seconds) || seconds < 1) return "--seconds is a positive integer";
  if (values.check && rounds < ROUNDS_MIN) return `--check needs at least ${ROUNDS_MIN} rounds`;
  const max = values.check ? Math.max(rounds, ROUNDS_MAX) : rounds;
  return {
    name,
    scenario,
    options: {
      isCheck: values.check,
      seconds,
      rounds: { min: rounds, max },
      only: values.only,
      log: (line) => void process.stderr.write(`${line}\n`),
    },
  };
}
