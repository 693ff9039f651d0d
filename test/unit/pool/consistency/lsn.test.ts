// LSN text and the page header rule, with the header sizes of PostgreSQL on both sides.
import { expect, test } from "bun:test";
import { formatLsn, normaliseLsn, parseLsn } from "#pool/consistency/lsn.ts";

const GEOMETRY = { blockSize: 8192, segmentSize: 16 * 1024 * 1024 };
const SEGMENT = BigInt(GEOMETRY.segmentSize);
const PAGE = BigInt(GEOMETRY.blockSize);

test("an LSN is read from both halves of its text", () => {
  const parsed = ["0/0", "0/4EEDA60", "1/0", "ff/a", "FFFFFFFF/FFFFFFFF"].map(parseLsn);

  expect(parsed).toEqual([0n, 0x4eeda60n, 1n << 32n, 0xff_0000_000an, 0xffff_ffff_ffff_ffffn]);
});

test("text that PostgreSQL does not print as an LSN is refused", () => {
  const texts = ["", "0", "/", "0/", "/0", "0/0/0", " 0/0", "0/0 ", "0/0\n", "0x1/0", "G/0"];
  const tooLong = ["123456789/0", "0/123456789", "-1/0", "+1/0", "1_0/0"];

  expect([...texts, ...tooLong].filter((text) => parseLsn(text) !== undefined)).toEqual([]);
});

test("an LSN is printed as PostgreSQL prints it", () => {
  expect([0n, 0x4eeda60n, 0xff_0000_000an].map(formatLsn)).toEqual(["0/0", "0/4EEDA60", "FF/A"]);
});

test("a position on a page header moves to the page's start, one behind it stays", () => {
  const page = 3n * PAGE;

  const moved = [0n, 1n, 24n, 25n, 40n, 41n, PAGE - 1n].map((offset) =>
    normaliseLsn(page + offset, GEOMETRY),
  );

  expect(moved).toEqual([page, page, page, page + 25n, page + 40n, page + 41n, page + PAGE - 1n]);
});

test("a position on the longer header at a segment's start moves to the segment's start", () => {
  const segment = 5n * SEGMENT;

  const moved = [0n, 24n, 25n, 40n, 41n].map((offset) => normaliseLsn(segment + offset, GEOMETRY));

  expect(moved).toEqual([segment, segment, segment, segment, segment + 41n]);
});
