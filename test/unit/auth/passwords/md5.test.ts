// Unit tests of auth/passwords/md5.ts. The expected texts were computed with Python's hashlib.
import { expect, test } from "bun:test";
import { md5Response } from "#auth/passwords/md5.ts";
import { Secret } from "#auth/secret.ts";

test.each([
  ["secret", "md5911f527656472583a006e7727877b33e"],
  ["p\u{e4}ss", "md5b9957ed45806faaaddb20aa778607125"],
])("the answer for the password %p is what PostgreSQL expects", (password, expected) => {
  expect(md5Response("app", new Secret(password), new Uint8Array([1, 2, 3, 4]))).toBe(expected);
});
