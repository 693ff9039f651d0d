// Unit tests of auth/scram/saslprep.ts: the examples of RFC 4013, and what PostgreSQL does elsewhere.
import { expect, test } from "bun:test";
import { prepareScramPassword } from "#auth/scram/saslprep.ts";

test.each([
  ["a soft hyphen is mapped to nothing", "I\u{ad}X", "IX"],
  ["ASCII stays as it is", "user\t\u{7f}", "user\t\u{7f}"],
  ["case is kept", "USER", "USER"],
  ["a feminine ordinal becomes a letter", "\u{aa}", "a"],
  ["a roman numeral becomes letters", "\u{2168}", "IX"],
  ["a no-break space becomes a space", "a\u{a0}b", "a b"],
  ["a zero-width space becomes a space", "a\u{200b}b", "a b"],
  ["a combining accent is composed", "e\u{301}", "\u{e9}"],
  ["a fullwidth letter becomes a plain one", "\u{ff21}", "A"],
  ["right-to-left text with right-to-left ends is prepared", "\u{627}1\u{fe8e}", "\u{627}1\u{627}"],
  ["a right-to-left character that is taken apart is prepared", "\u{fb1d}", "\u{5d9}\u{5b4}"],
  [
    "a neutral sign in right-to-left text is prepared",
    "\u{627}\u{2122}\u{627}",
    "\u{627}TM\u{627}",
  ],
])("%s", (_name, password, prepared) => {
  expect(prepareScramPassword(password)).toBe(prepared);
});

test.each([
  ["a control character", "\u{2168}\u{7}"],
  ["a prohibited character that NFKC would replace", "\u{340}\u{2168}"],
  ["a private use character", "\u{2168}\u{e000}"],
  ["an unassigned code point", "\u{2168}\u{50000}"],
  ["right-to-left text that ends otherwise", "\u{fe8e}1"],
  ["left-to-right letters beside right-to-left ones", "\u{fe8e}\u{2168}\u{fe8e}"],
  ["nothing but characters that are mapped to nothing", "\u{ad}"],
])("a password with %s is used as it is", (_name, password) => {
  expect(prepareScramPassword(password)).toBe(password);
});
