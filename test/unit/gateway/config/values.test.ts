import { expect, test } from "bun:test";
import {
  formatAddress,
  formatByteSize,
  parseAddress,
  parseByteSize,
} from "#gateway/config/values.ts";

test("sizes are integers of bytes or text with a unit of powers of 1024", () => {
  const sizes = [0, 65_536, "0", "512", "1B", "64KB", "16MB", "16 MB", "1GB"];

  expect(sizes.map(parseByteSize)).toEqual([
    0,
    65_536,
    0,
    512,
    1,
    64 * 1024,
    16 * 1024 ** 2,
    16 * 1024 ** 2,
    1024 ** 3,
  ]);
});

test("other texts and numbers are no sizes", () => {
  const texts = [
    "",
    "MB",
    "-1",
    "1.5MB",
    "1e3",
    "16mb",
    "16TB",
    "16  MB",
    "9".repeat(16),
    "9007199254740GB",
  ];

  expect([...texts, 1.5, Number.NaN, 2 ** 53].map(parseByteSize)).toEqual(
    Array.from({ length: texts.length + 3 }, () => undefined),
  );
});

test("a size is written in the largest unit that leaves no rest", () => {
  expect([0, 1023, 1024, 1536, 64 * 1024 ** 2, 1024 ** 3].map(formatByteSize)).toEqual([
    "0",
    "1023",
    "1KB",
    "1536",
    "64MB",
    "1GB",
  ]);
});

test("an address is parsed and written alike", () => {
  const addresses = ["localhost:5432", "10.0.0.1:0", "[::1]:65535", "db-1.example_2:1"];

  expect(addresses.map(parseAddress)).toEqual([
    { host: "localhost", port: 5432 },
    { host: "10.0.0.1", port: 0 },
    { host: "::1", port: 65_535 },
    { host: "db-1.example_2", port: 1 },
  ]);
  expect(
    addresses.map((text) => formatAddress(parseAddress(text) ?? { host: "", port: 0 })),
  ).toEqual(addresses);
});

test("other texts are no addresses", () => {
  const texts = [
    "",
    "localhost",
    ":5432",
    "localhost:",
    "localhost:65536",
    "localhost:-1",
    "::1:5432",
    "[::1]",
    "[localhost]:1",
    "[1.2.3.4]:1",
    "user@host:1",
    "host:1 ",
    "http://host:1",
    `${"h".repeat(254)}:1`,
  ];

  expect(texts.filter((text) => parseAddress(text) !== undefined)).toEqual([]);
});

test("a host name of 253 characters is the longest", () => {
  expect(parseAddress(`${"h".repeat(253)}:1`)?.host).toHaveLength(253);
});
