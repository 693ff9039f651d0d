// Numbers of a request's body reach PostgreSQL with the digits they were written with, whatever JavaScript would make of them.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { parameterText } from "#gateway/http/parameter-text.ts";
import { parseBody } from "#gateway/http/request-body.ts";

const DIGITS = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const digits = (maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...DIGITS), minLength: 1, maxLength });
/** JSON's grammar for a number (RFC 8259, "Numbers"); zeros are likely, since they are what gets lost. */
const jsonNumber = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(
      fc.constant("0"),
      digits(19).map((text) => text.replace(/^0+(?=.)/, "")),
    ),
    fc.oneof(
      fc.constant(""),
      digits(19).map((text) => `.${text}`),
      digits(4).map((text) => `.00000${text}`),
    ),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant("") },
      {
        weight: 1,
        arbitrary: fc
          .tuple(fc.constantFrom("e", "E", "e+", "e-"), digits(3))
          .map((parts) => parts.join("")),
      },
    ),
  )
  .map((parts) => parts.join(""));
const blank = fc.constantFrom("", " ", "\n", " \t");

test("a number keeps its digits, alone and in arrays, whatever stands around it", () => {
  fc.assert(
    fc.property(fc.array(jsonNumber, { minLength: 1, maxLength: 4 }), blank, (numbers, space) => {
      const [first = "0"] = numbers;
      const list = numbers.join(`${space},${space}`);
      const text = `{"one":${space}${first}${space},"all":[${space}${list}${space}]}`;

      const result = parseBody(text, ({ one, all }) => ({
        ok: true,
        value: [parameterText(one), parameterText(all)],
      }));

      expect(result).toEqual({ ok: true, value: [first, `{${numbers.join(",")}}`] });
    }),
    { numRuns: 2_000 },
  );
});
