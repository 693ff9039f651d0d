// What people read: figures always, ratios only of clean runs.
import { expect, test } from "bun:test";
import { drawPlot } from "#test/bench/plot.ts";
import { formatComparison } from "#test/bench/report.ts";
import type { ComparisonOutcome, FigureColumn, Sample } from "#test/bench/scenario.ts";

const COLUMNS: readonly FigureColumn[] = [
  { figure: "tps", title: "tps", digits: 0 },
  { figure: "cpuUs", title: "CPU", digits: 1 },
  { figure: "p99Ms", title: "p99 ms", digits: 3 },
];

function outcome(pgbouncer: Sample): ComparisonOutcome {
  const walgate: Sample = { errorCount: 0, figures: { tps: 900, cpuUs: 12 } };
  const direct: Sample = { errorCount: 0, figures: { tps: 3_600 } };
  return {
    name: "simple, 32 clients",
    control: { subject: "walgate", again: "walgate again" },
    contenders: [
      { name: "direct", samples: [direct] },
      { name: "pgbouncer", samples: [pgbouncer] },
      { name: "walgate", samples: [walgate] },
      { name: "walgate again", samples: [walgate] },
    ],
    bars: [],
  };
}

test("a clean comparison shows figures, ratios and the A/A ratio, and only columns that were measured", () => {
  const text = formatComparison(
    outcome({ errorCount: 0, figures: { tps: 1_000, cpuUs: 10 } }),
    COLUMNS,
  );

  expect(text).toBe(`simple, 32 clients (1 round)
                        tps   CPU
  direct               3600
  pgbouncer            1000  10.0
  walgate               900  12.0
  walgate again         900  12.0
  walgate / direct     0.25
  walgate / pgbouncer  0.90  1.20
  A/A                  1.00  1.00`);
});

test("a comparison with an error shows no ratio, not even between clean contenders", () => {
  const failed: Sample = { errorCount: 1, firstError: "server closed", figures: { tps: 5 } };

  const text = formatComparison(outcome(failed), COLUMNS);

  expect(text).not.toContain(" / ");
  expect(text).not.toContain("A/A");
  expect(text).toContain("no ratios: pgbouncer: 1 errors (server closed)");
});

test("a bar shows its verdict, what was judged and its spread", () => {
  const bar = {
    figure: "tps",
    subject: "walgate",
    peer: "pgbouncer",
    bound: "at least",
    limit: 0.85,
  } as const;
  const judged = {
    bar,
    verdict: "fail",
    value: 0.8,
    low: 0.79,
    high: 0.81,
    control: 1.02,
  } as const;
  const text = formatComparison({ name: "x", contenders: [], bars: [judged] }, COLUMNS);

  expect(text.split("\n").at(-1)).toBe(
    "  fail: tps of walgate / pgbouncer at least 0.85: 0.80 (0.79 to 0.81, divided by A/A 1.02)",
  );
});

test("a plot draws each line between its axes and escapes names", () => {
  const svg = drawPlot({
    title: "a < b & c",
    xTitle: "load",
    yTitle: "ms",
    series: [
      {
        name: "walgate",
        points: [
          { x: 0, y: 0 },
          { x: 100, y: 2 },
        ],
      },
    ],
  });

  expect(svg).toContain("a &lt; b &amp; c");
  expect(svg).toContain('points="64.0,372.0 570.0,36.0"');
});
