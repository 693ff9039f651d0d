// Unit tests of auth/scram/messages.ts.
import { describe, expect, test } from "bun:test";
import {
  decodeBase64,
  decodeScramText,
  isScramNonce,
  parseScramAttributes,
  parseScramIterations,
  SCRAM_ITERATIONS_MAX,
  SCRAM_MESSAGE_BYTES_MAX,
} from "#auth/scram/messages.ts";

describe("SCRAM text", () => {
  test("a message of the maximum size is read and a larger one is not", () => {
    const largest = new Uint8Array(SCRAM_MESSAGE_BYTES_MAX).fill(97);
    const tooLarge = new Uint8Array(SCRAM_MESSAGE_BYTES_MAX + 1).fill(97);

    expect(decodeScramText(largest)).toBe("a".repeat(SCRAM_MESSAGE_BYTES_MAX));
    expect(decodeScramText(tooLarge)).toBeUndefined();
  });

  test("a message with a NUL or that is not UTF-8 is not read", () => {
    expect(decodeScramText(new Uint8Array([97, 0, 97]))).toBeUndefined();
    expect(decodeScramText(new Uint8Array([97, 0xff]))).toBeUndefined();
  });
});

test("attributes are split in order, and a value may hold an equals sign", () => {
  expect(parseScramAttributes("r=a=b,s=c")).toEqual([
    { name: "r", value: "a=b" },
    { name: "s", value: "c" },
  ]);
});

test.each(["", "r", "r=", "rr=a", "r=a,", ",r=a", "1=a", "r=a,,s=b"])(
  "%p is not a list of attributes",
  (text) => {
    expect(parseScramAttributes(text)).toBeUndefined();
  },
);

test("a nonce is printable ASCII without comma and space", () => {
  expect(["!~+-", "a,b", "a b", "\u{e4}", ""].map(isScramNonce)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});

test("iterations are decimal and bounded", () => {
  const texts = [
    "1",
    `${SCRAM_ITERATIONS_MAX}`,
    `${SCRAM_ITERATIONS_MAX + 1}`,
    "0",
    "-1",
    "1e3",
    "01",
  ];

  expect(texts.map(parseScramIterations)).toEqual([
    1,
    SCRAM_ITERATIONS_MAX,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("base64 is read only in its canonical form", () => {
  expect(["AAA=", "AAB=", "AAA", "AA-_", "A===", ""].map(decodeBase64)).toEqual([
    new Uint8Array(2),
    undefined,
    undefined,
    undefined,
    undefined,
    new Uint8Array(0),
  ]);
});
