// How bars are judged, and that a run with errors gives no ratio.
import { describe, expect, test } from "bun:test";
import type { Bar, BarOutcome, ContenderOutcome, Sample } from "#test/bench/scenario.ts";
import { exitCodeOf, judge, ratioOf } from "#test/bench/verdict.ts";

const BAR: Bar = {
  figure: "tps",
  subject: "walgate",
  peer: "pgbouncer",
  bound: "at least",
  limit: 0.8,
};
const CPU: Bar = { ...BAR, figure: "cpuUs", bound: "at most", limit: 1.25 };
const CONTROL = { control: { subject: "walgate", again: "walgate again" } };

function contender(name: string, figure: string, values: readonly number[]): ContenderOutcome {
  const samples = values.map((value): Sample => ({ errorCount: 0, figures: { [figure]: value } }));
  return { name, samples };
}

function seven(value: number): number[] {
  return Array.from({ length: 7 }, () => value);
}

function withErrors({ name, samples }: ContenderOutcome): ContenderOutcome {
  const failed: Sample = { errorCount: 3, firstError: "server closed", figures: { tps: 1 } };
  return { name, samples: [...samples.slice(1), failed] };
}

describe("a bar about a ratio", () => {
  test.each([
    [800, "pass"],
    [799, "fail"],
  ] as const)("with %i beside 1000 and no noise: %s at 0.8", (tps, verdict) => {
    const outcome = judge(BAR, {}, [
      contender("walgate", "tps", seven(tps)),
      contender("pgbouncer", "tps", seven(1_000)),
    ]);

    const value = tps / 1_000;
    expect(outcome).toEqual({ bar: BAR, verdict, value, low: value, high: value });
  });

  test.each([
    [12.5, "pass"],
    [12.6, "fail"],
  ] as const)("from above, with %p beside 10: %s at 1.25", (cpuUs, verdict) => {
    const outcome = judge(CPU, {}, [
      contender("walgate", "cpuUs", seven(cpuUs)),
      contender("pgbouncer", "cpuUs", seven(10)),
    ]);

    expect(outcome.verdict).toBe(verdict);
  });

  test("is undecided while the bar lies within the spread", () => {
    const outcome = judge(BAR, {}, [
      contender("walgate", "tps", [790, 900, 900, 900, 900, 900, 900]),
      contender("pgbouncer", "tps", seven(1_000)),
    ]);

    expect(outcome).toEqual({ bar: BAR, verdict: "undecided", value: 0.9, low: 0.79, high: 0.9 });
  });

  test("is undecided with five rounds, however clear they look", () => {
    const outcome = judge(BAR, {}, [
      contender("walgate", "tps", seven(2_000).slice(2)),
      contender("pgbouncer", "tps", seven(1_000).slice(2)),
    ]);

    expect(outcome.verdict).toBe("undecided");
  });

  test("is judged on the ratio divided by the A/A ratio", () => {
    const outcome = judge(BAR, CONTROL, [
      contender("walgate", "tps", seven(1_000)),
      contender("pgbouncer", "tps", seven(1_000)),
      contender("walgate again", "tps", seven(800)),
    ]);

    expect(outcome).toEqual({
      bar: BAR,
      verdict: "pass",
      value: 0.8,
      low: 0.8,
      high: 0.8,
      control: 1.25,
    });
  });

  test("compares rounds with themselves, so that a slow round slows both", () => {
    const outcome = judge(BAR, {}, [
      contender("walgate", "tps", [100, 200, 300, 400, 500, 600, 700]),
      contender("pgbouncer", "tps", [100, 200, 300, 400, 500, 600, 700]),
    ]);

    expect(outcome).toEqual({ bar: BAR, verdict: "pass", value: 1, low: 1, high: 1 });
  });

  test("is not measured where the peer is missing", () => {
    const missing = [{ peer: "pgbouncer", reason: "pgbouncer is not on the path" }];
    const outcome = judge(BAR, { missing }, [contender("walgate", "tps", seven(1))]);

    expect(outcome).toEqual({
      bar: BAR,
      verdict: "not measured",
      reason: "pgbouncer is not on the path",
    });
  });
});

test("a bar about the figure itself is judged on its own spread", () => {
  const bar: Bar = { figure: "bytesEach", subject: "walgate", bound: "at most", limit: 4_096 };

  const outcome = judge(bar, CONTROL, [contender("walgate", "bytesEach", seven(4_096))]);

  expect(outcome).toEqual({ bar, verdict: "pass", value: 4_096, low: 4_096, high: 4_096 });
});

describe("a run with errors", () => {
  const walgate = contender("walgate", "tps", seven(1_000));
  const pgbouncer = contender("pgbouncer", "tps", seven(1_000));
  const reason = "pgbouncer: 3 errors (server closed)";

  test("gives no ratio", () => {
    expect(ratioOf(walgate, withErrors(pgbouncer), "tps")).toEqual({ ok: false, reason });
  });

  test("gives no verdict about a bar", () => {
    const outcome = judge(BAR, {}, [walgate, withErrors(pgbouncer)]);

    expect(outcome).toEqual({ bar: BAR, verdict: "errors", reason });
  });

  test("spoils the control as well", () => {
    const again = withErrors(contender("walgate again", "tps", seven(1_000)));

    expect(judge(BAR, CONTROL, [walgate, pgbouncer, again]).verdict).toBe("errors");
  });
});

describe("the exit code", () => {
  const clean = contender("walgate", "tps", seven(1));
  const code = (verdicts: readonly BarOutcome["verdict"][], isCheck = true): number =>
    exitCodeOf(
      [{ contenders: [clean], bars: verdicts.map((verdict) => ({ bar: BAR, verdict })) }],
      isCheck,
    );

  test.each([
    [["pass", "pass"], 0],
    [["pass", "fail"], 1],
    [["not measured", "fail"], 1],
    [["pass", "undecided"], 2],
    [["pass", "not measured"], 2],
    [[], 2],
  ] as const)("of %p under --check is %i", (verdicts, expected) => {
    expect(code(verdicts)).toBe(expected);
  });

  test("is 0 without --check, whatever the bars say", () => {
    expect(code(["fail", "undecided"], false)).toBe(0);
  });

  test("is 1 when a run had errors, also without --check", () => {
    expect(exitCodeOf([{ contenders: [withErrors(clean)], bars: [] }], false)).toBe(1);
  });
});
