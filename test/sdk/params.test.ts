// The text of each kind of parameter, and the kinds that are refused.
import { describe, expect, test } from "bun:test";
import { encodeParam } from "../../sdk/src/params.ts";

class Money {
  toJSON(): unknown {
    return { amount: "1.50" };
  }
}

class Opaque {
  readonly amount = "1.50";
}

const accepted: [title: string, value: unknown, text: string | null][] = [
  ["null", null, null],
  ["undefined", undefined, null],
  ["a string", "it's", "it's"],
  ["an empty string", "", ""],
  ["an integer", 42, "42"],
  ["a fraction", -1.5, "-1.5"],
  ["a large number", 1e21, "1e+21"],
  ["not a number", Number.NaN, "NaN"],
  ["infinity", -Infinity, "-Infinity"],
  ["a bigint", 2n ** 63n - 1n, "9223372036854775807"],
  ["true", true, "true"],
  ["false", false, "false"],
  ["a Date", new Date(Date.UTC(2026, 0, 31, 23, 59, 59, 7)), "2026-01-31T23:59:59.007Z"],
  ["the first year", new Date("0001-01-01T00:00:00Z"), "0001-01-01T00:00:00.000Z"],
  ["the year before it", new Date("0000-12-31T00:00:00Z"), "0001-12-31T00:00:00.000Z BC"],
  ["the Ides of March", new Date("-000043-03-15T12:00:00Z"), "0044-03-15T12:00:00.000Z BC"],
  ["a year of five digits", new Date("+010000-01-01T00:00:00Z"), "10000-01-01T00:00:00.000Z"],
  ["bytes", new Uint8Array([0, 15, 16, 255]), "\\x000f10ff"],
  ["no bytes", new Uint8Array(), "\\x"],
  ["bytes of a Buffer", Buffer.from("A"), "\\x41"],
  ["a plain object", { a: [1, null], b: "x" }, '{"a":[1,null],"b":"x"}'],
  ["an object without prototype", Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
  ["an instance with toJSON", new Money(), '{"amount":"1.50"}'],
  ["an empty array", [], "{}"],
  [
    "an array with every kind",
    [1, 2n, true, "x", null, undefined],
    '{"1","2","true","x",NULL,NULL}',
  ],
  ["a sparse array", Array.from({ length: 2 }), "{NULL,NULL}"],
  [
    "an array with syntax inside",
    ['"', "\\", "NULL", "", "{a,b}"],
    '{"\\"","\\\\","NULL","","{a,b}"}',
  ],
  ["a nested array", [[1], [2]], '{{"1"},{"2"}}'],
  ["an array of bytes", [new Uint8Array([1])], '{"\\\\x01"}'],
  ["an array of objects", [{ a: 'b"' }], '{"{\\"a\\":\\"b\\\\\\"\\"}"}'],
];

function nested(depth: number): unknown {
  return depth === 0 ? 1 : [nested(depth - 1)];
}

const cyclic: unknown[] = [];
cyclic.push(cyclic);
const cyclicObject: Record<string, unknown> = {};
cyclicObject["self"] = cyclicObject;

const refused: [title: string, value: unknown, reason: string | RegExp][] = [
  ["a function", () => 1, "it is a function"],
  ["a symbol", Symbol("secret"), "it is a symbol"],
  ["a function in an array", [[() => 1]], "it is a function"],
  ["an invalid Date", new Date(Number.NaN), "it is an invalid Date"],
  ["a class instance", new Opaque(), "it is a class instance without toJSON()"],
  ["a Map", new Map([["a", 1]]), "it is a class instance without toJSON()"],
  ["a promise", Promise.resolve(1), "it is a class instance without toJSON()"],
  ["a toJSON that gives nothing", { toJSON: () => undefined }, "its toJSON() gives no JSON"],
  ["seven dimensions", nested(7), "an array has more than 6 dimensions"],
  ["a cyclic array", cyclic, "an array has more than 6 dimensions"],
  ["a cyclic object", cyclicObject, /cyclic/i],
];

describe("parameter", () => {
  test.each(accepted)("%s has a text form", (_title, value, text) => {
    expect(encodeParam(value, 0)).toBe(text);
  });

  test("six dimensions are accepted", () => {
    expect(encodeParam(nested(6), 0)).toBe('{{{{{{"1"}}}}}}');
  });

  test.each(refused)("%s is refused with its index", (_title, value, reason) => {
    const thrown = (): unknown => encodeParam(value, 3);

    expect(thrown).toThrow(TypeError);
    expect(thrown).toThrow("the parameter at index 3 cannot be sent: ");
    expect(thrown).toThrow(reason);
  });

  test("a toJSON that throws something other than an error is refused with the index", () => {
    const value = {
      toJSON: (): never => {
        // oxlint-disable-next-line typescript/only-throw-error -- what a careless class may do
        throw "secret";
      },
    };

    expect(() => encodeParam(value, 1)).toThrow(
      "the parameter at index 1 cannot be sent: its toJSON() failed",
    );
  });
});
