// The cookie of the example Worker gives back what it was given, whatever else stands beside it.
import { expect, test } from "bun:test";
import { connect } from "@walgate/sdk";
import { openSession, tokenCookie } from "../../../wrangler-compat/src/token-cookie.ts";

const db = connect({ url: "http://127.0.0.1:1" });

test.each([["wg1.AbC-_9"], ["wg1.AbC,wg1.-_9,wg1.D"]])("the token %s comes back", (token) => {
  const cookie = tokenCookie(token).split(";")[0] ?? "";

  expect(cookie).not.toContain(",");
  expect(openSession(db, cookie).token).toBe(token);
  expect(openSession(db, `a=b;${cookie};c`).token).toBe(token);
});

test.each([
  [null, null],
  ["", null],
  ["other=wg1.A", null],
  ["xwalgate-token=wg1.A", null],
  ["walgate-token", null],
  ["walgate-token=", null],
  ["walgate-token=wg1.A=", "unreadable-cookie"],
  ["walgate-token=%ZZ", "unreadable-cookie"],
])("the header %j opens a session with the token %j", (header, token) => {
  expect(openSession(db, header).token).toBe(token);
});

test("a cookie longer than any token is one that cannot be read", () => {
  const longest = "a".repeat(4_096);

  expect(openSession(db, `walgate-token=${longest}`).token).toBe(longest);
  expect(openSession(db, `walgate-token=${longest}a`).token).toBe("unreadable-cookie");
});
