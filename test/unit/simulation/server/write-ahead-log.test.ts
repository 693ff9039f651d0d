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
  insertPosition,
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

test("the insert position behind a full page is behind the next page's header, and means the same", () => {
  const page = 4 * BLOCK_BYTES;
  const segment = 4 * SEGMENT_BYTES;
  const ends = [page - 8, page, page + 32, segment];

  const positions = ends.map(insertPosition);

  expect(positions).toEqual([page - 8, page + 24, page + 32, segment + 40]);
  expect(positions.map((lsn) => normaliseLsn(BigInt(lsn), GEOMETRY))).toEqual(ends.map(BigInt));
});

test("a record that just fills its page ends with it, and one that does not fit goes on behind the header", () => {
  const room = BLOCK_BYTES - (START_LSN % BLOCK_BYTES);
  const timeline = new Timeline(1, []);
  timeline.append(0, room, []);
  timeline.append(0, 1, []);
  const other = new Timeline(1, []);
  other.append(0, room + 8, []);

  const start = START_LSN + room;
  expect(timeline.records.map(({ lsn }) => lsn - start)).toEqual([0, 24 + 8]);
  expect(other.records.map(({ lsn }) => lsn - start)).toEqual([24 + 8]);
});

test("positions read as PostgreSQL prints them, beyond 32 bits too", () => {
  const positions = [START_LSN, 2 ** 32 - 1, 2 ** 32, 5 * 2 ** 32 + 0xabc];

  expect(positions.map(formatPosition)).toEqual(positions.map((lsn) => formatLsn(BigInt(lsn))));
  expect(positions.map((lsn) => parseLsn(formatPosition(lsn)))).toEqual(positions.map(BigInt));
});
