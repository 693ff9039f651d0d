// Says what a bench found: a table for people, JSON for programs, and a plot for each curve.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Machine } from "./machine.ts";
import { drawPlot } from "./plot.ts";
import type { BarOutcome, ComparisonOutcome, FigureColumn, Plot } from "./scenario.ts";
import { median } from "./statistics.ts";
import { errorOf, figuresOf, ratioOf } from "./verdict.ts";

export interface Report {
  readonly scenario: string;
  readonly machine: Machine;
  readonly seconds: number;
  readonly columns: readonly FigureColumn[];
  readonly comparisons: readonly ComparisonOutcome[];
  readonly plots: readonly Plot[];
  readonly notes: readonly string[];
}

/** One block: figures of each contender, ratios of the subject to each other one, the A/A ratio, and the bars. */
export function formatComparison(
  outcome: ComparisonOutcome,
  columns: readonly FigureColumn[],
): string {
  const shown = columns.filter(({ figure }) =>
    outcome.contenders.some(({ samples }) => samples.some(({ figures }) => figure in figures)),
  );
  const rows = [["", ...shown.map(({ title }) => title)]];
  for (const { name, samples } of outcome.contenders) {
    rows.push([
      name,
      ...shown.map(({ figure, digits }) => format(median(figuresOf(samples, figure)), digits)),
    ]);
  }
  const { control } = outcome;
  const subject = outcome.contenders.find(({ name }) => name === control?.subject);
  const error = errorOf(outcome.contenders);
  if (subject !== undefined && error === undefined) {
    for (const peer of outcome.contenders) {
      if (peer === subject) continue;
      const title = peer.name === control?.again ? "A/A" : `${subject.name} / ${peer.name}`;
      rows.push([
        title,
        ...shown.map(({ figure }) => {
          const ratio = ratioOf(subject, peer, figure);
          return ratio.ok ? ratio.value.toFixed(2) : "";
        }),
      ]);
    }
  }
  const count = Math.max(0, ...outcome.contenders.map(({ samples }) => samples.length));
  const lines = [
    `${outcome.name} (${count} ${count === 1 ? "round" : "rounds"})`,
    ...alignColumns(rows),
  ];
  if (error !== undefined) lines.push(`  no ratios: ${error}`);
  return [...lines, ...outcome.bars.map(formatBar)].join("\n");
}

function formatBar(outcome: BarOutcome): string {
  const { bar, verdict, value, low, high, control, reason } = outcome;
  const what = bar.peer === undefined ? bar.subject : `${bar.subject} / ${bar.peer}`;
  const promise = `${bar.figure} of ${what} ${bar.bound} ${bar.limit}`;
  if (value === undefined) return `  ${verdict}: ${promise} (${reason ?? "no figure"})`;
  const range = `${round(low)} to ${round(high)}`;
  const divided = control === undefined ? "" : `, divided by A/A ${control.toFixed(2)}`;
  return `  ${verdict}: ${promise}: ${round(value)} (${range}${divided})`;
}

function round(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "?";
  return Math.abs(value) < 100 ? value.toFixed(2) : String(Math.round(value));
}

function format(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "";
}

function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) =>
    `  ${row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")}`.trimEnd(),
  );
}

export function formatMachine(machine: Machine): string {
  const { processor, processorCount, memoryGb, kernel, bun, pgbench, pgbouncer, loadBefore } =
    machine;
  return (
    `${processorCount} × ${processor}, ${memoryGb} GB, Linux ${kernel}, Bun ${bun}, ` +
    `pgbench ${pgbench}, PgBouncer ${pgbouncer}, load before ${loadBefore.toFixed(2)}`
  );
}

/** Writes `<scenario>.json`, `<scenario>.txt` and the plots into the folder; the paths. */
export async function writeReport(folder: string, report: Report): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const paths: string[] = [];
  const write = async (name: string, text: string): Promise<void> => {
    const path = join(folder, name);
    await writeFile(path, text);
    paths.push(path);
  };
  await write(`${report.scenario}.json`, `${JSON.stringify(report, null, 2)}\n`);
  const blocks = report.comparisons.map((outcome) => formatComparison(outcome, report.columns));
  await write(
    `${report.scenario}.txt`,
    `${[formatMachine(report.machine), ...report.notes, "", blocks.join("\n\n")].join("\n")}\n`,
  );
  for (const plot of report.plots) {
    const name = plot.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
    await write(`${report.scenario}-${name}.svg`, drawPlot(plot));
  }
  return paths;
}
