// Derivation of token keys from secrets.
import { expect, test } from "bun:test";
import { deriveTokenKeys, TOKEN_SECRET_BYTES_MIN } from "#pool/consistency/token-keys.ts";

function secret(seed: number): Uint8Array {
  return new Uint8Array(TOKEN_SECRET_BYTES_MIN).fill(seed);
}

test("the first secret signs and every secret's key is found by its id", () => {
  const ring = deriveTokenKeys([secret(1), secret(2)]);
  const other = deriveTokenKeys([secret(2)]);

  expect(ring.withId(ring.signing.id)).toContainEqual(ring.signing);
  expect(ring.withId(other.signing.id)).toContainEqual(other.signing);
  expect(ring.signing).not.toEqual(other.signing);
});

test("two secrets with one id are both tried", () => {
  const first = deriveTokenKeys([secret(1)]).signing;
  const twin = Array.from({ length: 4096 }, (_, index) => {
    const bytes = secret(9);
    bytes[0] = index & 0xff;
    bytes[1] = index >> 8;
    return bytes;
  }).find((bytes) => deriveTokenKeys([bytes]).signing.id === first.id);
  if (twin === undefined) throw new Error("no secret of 4096 shares the id");

  expect(deriveTokenKeys([secret(1), twin]).withId(first.id)).toHaveLength(2);
});

test("a key is not its secret", () => {
  expect(deriveTokenKeys([secret(1)]).signing.mac).not.toEqual(secret(1));
});

test("a secret below 32 bytes and an empty ring are refused", () => {
  const short = new Uint8Array(TOKEN_SECRET_BYTES_MIN - 1);

  expect(() => deriveTokenKeys([secret(1), short])).toThrow(RangeError);
  expect(() => deriveTokenKeys([])).toThrow(RangeError);
});
