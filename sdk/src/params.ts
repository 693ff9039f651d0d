// Turns a JavaScript value into the text that PostgreSQL reads as a parameter.

import { encodeArray } from "./array-literal.ts";
import { formatBytes } from "./bytea.ts";
import { formatInstant } from "./timestamp.ts";

/**
 * What a parameter may be. null and undefined are NULL; a Date is its instant; a Uint8Array is
 * bytea; an array is a PostgreSQL array; a plain object, or one with toJSON(), is JSON. A JSON
 * document that is an array must be given as JSON.stringify(value). Functions, symbols and other
 * class instances are refused.
 */
export type Param = string | number | bigint | boolean | object | null | undefined;

/**
 * Text of one parameter.
 *
 * @throws TypeError naming `index` for a value that has no text form.
 */
export function encodeParam(value: unknown, index: number): string | null {
  try {
    return Array.isArray(value) ? encodeArray(value, encodeScalar) : encodeScalar(value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "its toJSON() failed";
    throw new TypeError(`the parameter at index ${index} cannot be sent: ${reason}`, {
      cause: error,
    });
  }
}

function encodeScalar(value: unknown): string | null {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
    case "bigint":
    case "boolean":
      return String(value);
    case "undefined":
      return null;
    case "object":
      return value === null ? null : encodeObject(value);
    case "function":
    case "symbol":
    default:
      throw new TypeError(`it is a ${typeof value}`);
  }
}

function encodeObject(value: object): string {
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) {
      throw new TypeError("it is an invalid Date");
    }
    return formatInstant(value);
  }
  if (value instanceof Uint8Array) {
    return formatBytes(value);
  }
  if (!isPlain(value) && !("toJSON" in value)) {
    throw new TypeError("it is a class instance without toJSON()");
  }
  const json: unknown = JSON.stringify(value);
  if (typeof json !== "string") {
    throw new TypeError("its toJSON() gives no JSON");
  }
  return json;
}

/**
 * True for `{…}` of any realm: its prototype is null, or an Object.prototype, which itself has
 * none.
 */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === null ||
    (typeof prototype === "object" && Object.getPrototypeOf(prototype) === null)
  );
}
