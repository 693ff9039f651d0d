// Texts that lexers stumble over, one rule each.
import { expect, test } from "bun:test";
import { TokenReader } from "#pool/sql/token-reader.ts";

function tokensOf(text: string): string[] {
  const reader = new TokenReader(text);
  const tokens: string[] = [];
  while (reader.next()) tokens.push(`${reader.kind} ${text.slice(reader.start, reader.end)}`);
  return tokens;
}

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  ["blanks and comments are skipped", " \t\n-- a\r/* b */ x -- c", ["word x"]],
  ["block comments nest", "/* a /* b */ c */ x", ["word x"]],
  [
    "a comment ends an operator",
    "a+-- b\n/*c*/*/* d */e",
    ["word a", "symbol +", "symbol *", "word e"],
  ],
  ["a line comment ends at a carriage return", "-- a\rb", ["word b"]],
  ["an unterminated comment is broken", "a /* b", ["word a", "broken "]],
  ["an unterminated inner comment is broken", "/* a /* b */", ["broken "]],
  ["a doubled quote belongs to the string", "'a''b' c", ["string 'a''b'", "word c"]],
  ["a backslash in a plain string escapes nothing", "'a\\' b", ["string 'a\\'", "word b"]],
  ["a backslash in an escape string escapes", "E'a\\'b' c", ["string E'a\\'b'", "word c"]],
  ["a double backslash ends an escape", "e'a\\\\' b", ["string e'a\\\\'", "word b"]],
  [
    "an escape string goes on on the next line",
    "E'a' -- x\n 'b\\'c' d",
    ["string E'a' -- x\n 'b\\'c'", "word d"],
  ],
  [
    "a string on the same line is another one",
    "E'a' 'b\\' c",
    ["string E'a'", "string 'b\\'", "word c"],
  ],
  [
    "bit, hexadecimal and national strings are plain",
    "B'1' x'\\' N'a'",
    ["string B'1'", "string x'\\'", "word N", "string 'a'"],
  ],
  [
    "a string right behind a word is its own token",
    "some'a\\' b",
    ["word some", "string 'a\\'", "word b"],
  ],
  ["a unicode string is plain", "U&'\\0061' a", ["string U&'\\0061'", "word a"]],
  ["a unicode name is its own kind", 'u&"a""b" c', ['unicode_name u&"a""b"', "word c"]],
  ["u & alone is a word and a symbol", "u&a", ["word u", "symbol &", "word a"]],
  ["a quoted name ends at its quote", '"a;""b" c', ['quoted_name "a;""b"', "word c"]],
  ["a dollar quote ends at its own tag", "$a$ $b$ ' $a$ c", ["string $a$ $b$ ' $a$", "word c"]],
  ["an empty tag is a tag", "$$;$$", ["string $$;$$"]],
  ["a dollar inside a word quotes nothing", "a$b$ c", ["word a$b$", "word c"]],
  ["a parameter is no dollar quote", "$1$a$ ; $a$", ["parameter $1", "string $a$ ; $a$"]],
  ["a tag can't start with a digit", "$ 1", ["symbol $", "number 1"]],
  ["an unterminated dollar quote is broken", "a $b$ c $B$", ["word a", "broken "]],
  [
    "numbers are one token",
    "1 1.5e10 .5 0x1F 1_000",
    ["number 1", "number 1.5e10", "number .5", "number 0x1F", "number 1_000"],
  ],
  ["a number that runs into a quote is broken", "1E'a'", ["broken "]],
  ["a number that runs into a word is broken", "0x1G", ["broken "]],
  ["a number takes one dot, and none of two", "1.5.x", ["number 1.5", "symbol .", "word x"]],
  ["two dots belong to no number in front of them", "1..2", ["number 1", "symbol .", "number .2"]],
  ["an exponent takes a sign", "1e-5", ["number 1e-5"]],
  ["letters beyond ASCII are letters", "é$ñ \u00a0x", ["word é$ñ", "word \u00a0x"]],
  ["everything else is one character", "a::b", ["word a", "symbol :", "symbol :", "word b"]],
  ["an unterminated string is broken", "a 'b", ["word a", "broken "]],
  ["a string that ends in a doubled quote is broken", "'a''", ["broken "]],
];

test.each(CASES)("%s", (_, text, expected) => {
  expect(tokensOf(text)).toEqual([...expected]);
});

test("names are folded as PostgreSQL compares them", () => {
  const reader = new TokenReader('SET_Config "Set""X" \'s\'');
  const names: string[] = [];
  while (reader.next()) names.push(reader.name);

  expect(names).toEqual(["set_config", 'Set"X', ""]);
});
