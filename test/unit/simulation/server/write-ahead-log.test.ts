// Positions of the simulated log keep to the rules that the product reads them by.
import { expect, test } from "bun:test";
import { formatLsn, normaliseLsn, parseLsn } from "#pool/consistency/lsn.ts";
import { SeededRandom } from "#test/support/seeded-random.ts";
import {
  BLOCK_BYTES,
  SEGMENT_BYTES,
  START_LSN,
  Timeline,
  formatPosition,
} from "../../../simulation/server/write-ahead-log.ts";

const GEOMETRY = { blockSize: BLOCK_BYTES, segmentSize: SEGMENT_BYTES };

test("a log without records ends where it starts", () => {
  expect(new Timeline(1, []).endLsn).toBe(START_LSN);
});

test("each record ends behind the one before, and none inside a page's header", () => {
  const timeline = new Timeline(1, []);
  const random = new SeededRandom(7);
  for (let i = 0; i < 20_000; i++) timeline.append(i, 8 + random.below(200), []);

  const ends = timeline.records.map(({ lsn }) => lsn);

  expect(ends.every((lsn, i) => lsn > (ends[i - 1] ?? START_LSN))).toBe(true);
  expect(ends.filter((lsn) => normaliseLsn(BigInt(lsn), GEOMETRY) !== BigInt(lsn))).toEqual([]);
});

test("a record is counted from its end on", () => {
  const timeline = new Timeline(1, []);
  timeline.append(0, 100, []);
  timeline.append(0, 100, []);
  const [first = 0, second = 0] = timeline.records.map(({ lsn }) => lsn);

  const counts = [first - 1, first, second - 1, second].map((lsn) => timeline.countUpTo(lsn));

  expect(counts).toEqual([0, 1, 1, 2]);
});

test("positions read as PostgreSQL prints them, beyond 32 bits too", () => {
  const positions = [START_LSN, 2 ** 32 - 1, 2 ** 32, 5 * 2 ** 32 + 0xabc];

  expect(positions.map(formatPosition)).toEqual(positions.map((lsn) => formatLsn(BigInt(lsn))));
  expect(positions.map((lsn) => parseLsn(formatPosition(lsn)))).toEqual(positions.map(BigInt));
});
