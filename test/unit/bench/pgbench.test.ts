// Reads what pgbench 15 prints, copied from real runs.
import { describe, expect, test } from "bun:test";
import { parseErrors, parseLatencies, parseProgress, rateBetween } from "#test/bench/pgbench.ts";

const STDOUT = `transaction type: <builtin: select only>
scaling factor: 1
query mode: prepared
number of clients: 32
number of threads: 1
maximum number of tries: 1
duration: 3 s
number of transactions actually processed: 27011
number of failed transactions: 0 (0.000%)
latency average = 3.520 ms
initial connection time = 45.032 ms
tps = 9090.909091 (without initial connection time)
`;
const STDERR = `pgbench (15.20 (Debian 15.20-0+deb12u1), server 18.4)
progress: 1764549941.271 s, 9035.0 tps, lat 3.504 ms stddev 2.103, 0 failed
progress: 1764549942.271 s, 9012.0 tps, lat 3.549 ms stddev 2.030, 0 failed
`;

describe("a progress line", () => {
  test("gives its time and rate", () => {
    expect(STDERR.split("\n").map(parseProgress)).toEqual([
      undefined,
      { atS: 1_764_549_941.271, tps: 9_035 },
      { atS: 1_764_549_942.271, tps: 9_012 },
      undefined,
    ]);
  });

  test("under a rate limit has a lag behind it", () => {
    const line =
      "progress: 1764549941.271 s, 401.0 tps, lat 1.1 ms stddev 0.2, 0 failed, lag 0.081 ms";

    expect(parseProgress(line)).toEqual({ atS: 1_764_549_941.271, tps: 401 });
  });

  test("without any transaction has a rate of 0", () => {
    const line = "progress: 1764549941.271 s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed";

    expect(parseProgress(line)).toEqual({ atS: 1_764_549_941.271, tps: 0 });
  });
});

describe("the rate between progress lines", () => {
  test("weighs each second by its length and leaves out the first", () => {
    const lines = [
      { atS: 10, tps: 1 },
      { atS: 11, tps: 1_000 },
      { atS: 14, tps: 2_000 },
    ];

    expect(rateBetween(lines)).toBe(7_000 / 4);
  });

  test("is none for one line", () => {
    expect(rateBetween([{ atS: 10, tps: 1 }])).toBeNaN();
  });
});

describe("errors", () => {
  test("are none in a clean run", () => {
    expect(parseErrors(STDOUT, STDERR, 0)).toEqual({ errorCount: 0 });
  });

  test("are the failed transactions", () => {
    const stdout = STDOUT.replace("failed transactions: 0 (0.000%)", "failed transactions: 7 (1%)");

    expect(parseErrors(stdout, STDERR, 0)).toEqual({
      errorCount: 7,
      firstError: "failed transactions",
    });
  });

  test("are the lines that clients leave behind when they give up", () => {
    const aborted =
      "pgbench: error: client 3 script 0 aborted in command 1 query 0: ERROR:  no such table";
    const end = "pgbench: error: Run was aborted; the above results are incomplete.";

    expect(parseErrors(STDOUT, `${STDERR}${aborted}\n${end}\n`, 2)).toEqual({
      errorCount: 2,
      firstError: aborted,
    });
  });

  test("are one where only the exit code tells", () => {
    expect(parseErrors("", "", 137)).toEqual({
      errorCount: 1,
      firstError: "pgbench exited with 137",
    });
  });
});

describe("a log of transactions", () => {
  test("gives milliseconds, without those before the measured time", () => {
    const log =
      "0 1 900 0 1764549940 999999 12\n1 1 1250 0 1764549941 5 3\n0 2 75 0 1764549942 1 0\n";

    expect(parseLatencies(log, 1_764_549_941)).toEqual([1.25, 0.075]);
  });

  test("of a run without a rate lacks the last field", () => {
    expect(parseLatencies("0 1 900 0 1764549940 999999\n", 0)).toEqual([0.9]);
  });
});
