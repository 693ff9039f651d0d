// Unit tests of auth/secret.ts.
import { describe, expect, test } from "bun:test";
import { format, inspect } from "node:util";
import { Secret } from "#auth/secret.ts";

describe("Secret", () => {
  test("each way to print a secret gives ***", () => {
    const secret = new Secret("hunter2");

    const printed = [
      String(secret),
      "" + secret,
      JSON.stringify({ secret }),
      inspect(secret),
      inspect({ nested: { secret } }, { depth: 5, showHidden: true }),
      Bun.inspect({ secret }),
      format("%s %o %j", secret, secret, secret),
      inspect(new Error("failed", { cause: secret })),
    ];

    expect(printed.filter((text) => text.includes("hunter2"))).toEqual([]);
    expect(printed.filter((text) => !text.includes("***"))).toEqual([]);
  });

  test("text and bytes are given back only on demand", () => {
    expect(new Secret("pässword").reveal()).toBe("pässword");
    expect(new Secret("ab").revealBytes()).toEqual(new Uint8Array([97, 98]));
    expect(new Secret(new Uint8Array([97, 98])).reveal()).toBe("ab");
    expect(() => new Secret(new Uint8Array([0xff])).reveal()).toThrow(TypeError);
  });

  test("a secret made from bytes does not follow later changes of the array", () => {
    const bytes = new Uint8Array([1, 2]);
    const secret = new Secret(bytes);

    bytes[0] = 9;
    const revealed = secret.revealBytes();
    revealed[1] = 9;

    expect(secret.revealBytes()).toEqual(new Uint8Array([1, 2]));
  });

  test("secrets are equal by value, whatever their length and form", () => {
    const secret = new Secret("abc");

    expect(secret.equals(new Secret(new Uint8Array([97, 98, 99])))).toBe(true);
    expect(secret.equals(new Secret("abd"))).toBe(false);
    expect(secret.equals(new Secret("abcd"))).toBe(false);
  });
});
