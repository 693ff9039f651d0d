// How a server's answer is read, and what of a lying server's is refused.
import { expect, test } from "bun:test";
import { parseServerReading, usableLsn } from "#pool/consistency/server-sample.ts";

const STARTED = "2026-11-30 10:00:00+00";
const GEOMETRY = ["8192", "16777216", "180004"] as const;

function refuses(rows: readonly (readonly (string | null)[])[], withIdentity: boolean): boolean {
  try {
    parseServerReading(rows, withIdentity);
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ERR_SERVER_PROTOCOL";
  }
}

test("a replica's row is read", () => {
  const row = ["t", "0/3000148", "not paused", STARTED];

  expect(parseServerReading([row], false)).toEqual({
    isInRecovery: true,
    lsn: 0x3000148n,
    isReplayPaused: false,
    startedAt: STARTED,
    identity: undefined,
  });
});

test("replay counts as paused from the request on", () => {
  const paused = ["not paused", "pause requested", "paused", null].map(
    (state) => parseServerReading([["t", "0/1", state, STARTED]], false).isReplayPaused,
  );

  expect(paused).toEqual([false, true, true, true]);
});

test("a replica that has replayed nothing stands at 0", () => {
  expect(parseServerReading([["t", null, "not paused", STARTED]], false).lsn).toBe(0n);
});

test("a primary's timeline comes from its WAL file name, a replica's as a number", () => {
  const primary = ["f", "0/3000148", null, STARTED, "42", null, "0000001A0000000000000003"];
  const replica = ["t", "0/3000148", "not paused", STARTED, "-1", "26", null];

  const identities = [primary, replica].map(
    (row) => parseServerReading([[...row, ...GEOMETRY]], true).identity,
  );

  const rest = { timeline: 26, blockSize: 8192, segmentSize: 16_777_216, versionNumber: 180_004 };
  expect(identities).toEqual([
    { systemIdentifier: 42n, ...rest },
    { systemIdentifier: 2n ** 64n - 1n, ...rest },
  ]);
});

test("a primary's position is normalised, a replica's is what it replayed", () => {
  const row = ["f", "0/2018", null, STARTED, "1", null, "000000010000000000000003", ...GEOMETRY];
  const reading = parseServerReading([row], true);
  if (reading.identity === undefined) throw new Error("no identity");

  expect([
    usableLsn(reading, reading.identity),
    usableLsn({ ...reading, isInRecovery: true }, reading.identity),
  ]).toEqual([0x2000n, 0x2018n]);
});

test("an answer of another shape is a protocol error", () => {
  const sample = ["t", "0/1", "not paused", STARTED];
  const bad: (readonly (readonly (string | null)[])[])[] = [
    [],
    [sample, sample],
    [sample.slice(1)],
    [[...sample, "x"]],
    [["true", "0/1", "not paused", STARTED]],
    [[null, "0/1", "not paused", STARTED]],
    [["t", "0/", "not paused", STARTED]],
    [["f", null, null, STARTED]],
    [["t", "0/1", "not paused", null]],
  ];

  expect(bad.filter((rows) => !refuses(rows, false))).toEqual([]);
});

test("an identity with a number out of range is a protocol error", () => {
  const row = (at: number, value: string | null): (string | null)[] => {
    const good = ["t", "0/1", "not paused", STARTED, "1", "1", null, ...GEOMETRY];
    return good.map((cell, index) => (index === at ? value : cell));
  };
  const bad = [
    row(4, null),
    row(4, "abc"),
    row(5, null),
    row(5, "0"),
    row(5, "4294967296"),
    row(7, "0"),
    row(7, "3000"),
    row(8, "16MB"),
    row(9, ""),
  ];

  expect(refuses([row(6, null)], true)).toBe(false);
  expect(bad.filter((cells) => !refuses([cells], true))).toEqual([]);
});

test("a primary without a readable WAL file name is a protocol error", () => {
  const names = [null, "", "00000001", "0000000100000000000000031", "G000000100000000000000003"];

  const accepted = names.filter(
    (name) => !refuses([["f", "0/1", null, STARTED, "1", null, name, ...GEOMETRY]], true),
  );

  expect(accepted).toEqual([]);
});
