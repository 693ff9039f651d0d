// Laws of the text forms: what is written reads back as the same value.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { NestedArray } from "../../sdk/src/array-literal.ts";
import { encodeArray, parseArray } from "../../sdk/src/array-literal.ts";
import { formatBytes, parseBytes } from "../../sdk/src/bytea.ts";
import { formatInstant, parseInstant } from "../../sdk/src/timestamp.ts";

const element = fc.oneof(
  fc.constantFrom("", "NULL", "null", '"', "\\", "{}", ",", "\\x00", " a ", "\n"),
  fc.string({ unit: "binary" }),
  fc.constant(null),
);

/** Ragged ones too: PostgreSQL refuses them, but the syntax has them. */
const array: fc.Arbitrary<NestedArray<string>> = fc.letrec<{ list: NestedArray<string> }>(
  (tie) => ({
    list: fc.array(fc.oneof({ maxDepth: 5, withCrossShrink: true }, element, tie("list"))),
  }),
).list;

test("an array literal reads back as the array it was written from", () => {
  fc.assert(
    fc.property(array, (items) => {
      const text = encodeArray(items, (item) => (typeof item === "string" ? item : null));

      expect(parseArray(text, (word) => word)).toEqual(items);
    }),
  );
});

test("any text either is an array literal or is refused with the same SyntaxError", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom("{", "}", ",", '"', "\\", "a", "[", "=") }),
  );
  fc.assert(
    fc.property(text, (input) => {
      try {
        expect(parseArray(input, (word) => word)).toBeArray();
      } catch (error) {
        expect(error).toEqual(new SyntaxError("malformed array literal"));
      }
    }),
  );
});

test("bytes read back as the bytes they were written from", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(parseBytes(formatBytes(bytes))).toEqual(new Uint8Array(bytes));
    }),
  );
});

test("an instant that PostgreSQL prints in UTC reads back as the same Date", () => {
  // PostgreSQL's earliest year is 4713 BC.
  const min = new Date("-004712-01-01T00:00:00Z");
  fc.assert(
    fc.property(fc.date({ min, noInvalidDate: true }), (date) => {
      const printed = formatInstant(date).replace("T", " ").replace("Z", "+00");

      expect(parseInstant(printed)).toEqual(date);
    }),
  );
});
