// Checks a parsed file against the schema, fills in defaults and decodes sizes, addresses and secrets.
import type { TSchema } from "@sinclair/typebox";
import { Value, type ValueError, ValueErrorType } from "@sinclair/typebox/value";
import type { ConfigError, ConfigProblems, KeyPath } from "./config-error.ts";
import { formatKeyPath } from "./config-error.ts";
import { nearestKey } from "./nearest-key.ts";
import { type ConfigFile, configSchema } from "./schema.ts";

/** Deeper than any key of the schema; databases.NAME.servers[0].address has five parts. */
const DEPTH_MAX = 8;

/** A part of a JSON pointer is an index only where the value is an array: [databases.0] is a table. */
function pathOf(pointer: string, root: unknown): KeyPath {
  const path: (string | number)[] = [];
  let value: unknown = root;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(value) ? Number(key) : key);
    value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  }
  return path;
}

/** Of the alternatives of a union, the one that the writer meant: a table's mistakes are those of the table. */
function* withoutUnions(errors: Iterable<ValueError>): Iterable<ValueError> {
  for (const error of errors) {
    const isTable = typeof error.value === "object" && !Array.isArray(error.value);
    const isList = Array.isArray(error.value);
    const alternatives: readonly TSchema[] = error.schema["anyOf"] ?? [];
    const meant = alternatives.findIndex(
      ({ type }) => (isTable && type === "object") || (isList && type === "array"),
    );
    const inner = error.errors[meant];
    if (error.type === ValueErrorType.Union && inner !== undefined) yield* withoutUnions(inner);
    else yield error;
  }
}

function isUnknownKey({ type }: ValueError): boolean {
  return type === ValueErrorType.ObjectAdditionalProperties;
}

/** Paths of all keys of the schema, with NAME for a free name and [] for an array. */
function* keysOf(schema: TSchema, above: string): Iterable<readonly [key: string, path: string]> {
  for (const [key, value] of Object.entries<TSchema>(schema["properties"] ?? {})) {
    const path = above === "" ? key : `${above}.${key}`;
    yield [key, path];
    yield* keysOf(value, path);
  }
  for (const value of Object.values<TSchema>(schema["patternProperties"] ?? {})) {
    yield* keysOf(value, `${above}.NAME`);
  }
  if (schema["items"] !== undefined) yield* keysOf(schema["items"], `${above}[]`);
}

function unknownKeyText(path: KeyPath, schema: TSchema): string {
  const key = String(path.at(-1));
  if (schema["patternProperties"] !== undefined) {
    return `not a valid name, must be ${String(schema["nameExpected"])}`;
  }
  const elsewhere = [...keysOf(configSchema, "")].find(([known]) => known === key)?.[1];
  if (elsewhere !== undefined) return `unknown key here, but ${elsewhere} exists`;
  const nearest = nearestKey(key, Object.keys(schema["properties"] ?? {}));
  return nearest === undefined
    ? "unknown key"
    : `unknown key, the nearest valid key is ${formatKeyPath([...path.slice(0, -1), nearest])}`;
}

function problemText(error: ValueError, path: KeyPath): string {
  const { schema, value, type } = error;
  if (isUnknownKey(error)) return unknownKeyText(path, schema);
  if (type === ValueErrorType.ObjectRequiredProperty) return "missing";
  if (type === ValueErrorType.ArrayMinItems) return "must not be empty";
  const expected = String(schema["expected"]);
  const notBuilt: readonly unknown[] = schema["notBuilt"] ?? [];
  // The word is one of ours, so it may be shown.
  if (notBuilt.includes(value)) return `"${String(value)}" is not built yet, must be ${expected}`;
  return `must be ${expected}`;
}

/** A default of a union's alternative is only filled in when the rest of the alternative is right. */
function isMissingDefault({ type, schema }: ValueError): boolean {
  return type === ValueErrorType.ObjectRequiredProperty && schema["default"] !== undefined;
}

/** An unknown key comes first: it is the cause when its right spelling is missing. */
function firstProblem(value: unknown, problems: ConfigProblems): ConfigError | undefined {
  const errors = [...withoutUnions(Value.Errors(configSchema, value))];
  const error =
    errors.find(isUnknownKey) ?? errors.find((found) => !isMissingDefault(found)) ?? errors[0];
  if (error === undefined) return undefined;
  const path = pathOf(error.path, value);
  return problems.ofKey(path, problemText(error, path));
}

/**
 * TypeBox copies tables by assignment, where a key `__proto__` would set a prototype instead of being
 * refused as unknown; it also walks unions recursively, so that depth needs a limit.
 */
function refuseUnsafeKeys(root: unknown, problems: ConfigProblems): void {
  const left: { readonly path: KeyPath; readonly value: unknown }[] = [{ path: [], value: root }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { path, value } = next;
    if (typeof value !== "object" || value === null) continue;
    if (Object.hasOwn(value, "__proto__")) {
      throw problems.ofKey([...path, "__proto__"], "unknown key");
    }
    if (path.length >= DEPTH_MAX) throw problems.ofKey(path, "nested too deeply");
    for (const [key, inner] of Object.entries(value)) {
      left.push({ path: [...path, Array.isArray(value) ? Number(key) : key], value: inner });
    }
  }
}

/**
 * `[auth.users]` in place of `[[auth.users]]` makes a table where a list belongs. TypeBox would merge it into the list's default, which is
 * then right and empty.
 */
function refuseTablesForLists(
  schema: TSchema,
  value: unknown,
  path: KeyPath,
  problems: ConfigProblems,
): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      refuseTablesForLists(schema["items"] ?? {}, item, [...path, index], problems);
    }
    return;
  }
  if (schema["type"] === "array") {
    throw problems.ofKey(path, "must be a list; of tables, it is written with [[ ]]");
  }
  const [anyName] = Object.values<TSchema>(schema["patternProperties"] ?? {});
  for (const [key, inner] of Object.entries(value)) {
    const known: TSchema | undefined = schema["properties"]?.[key] ?? anyName;
    if (known !== undefined) refuseTablesForLists(known, inner, [...path, key], problems);
  }
}

/**
 * Changes `parsed`: defaults are written into it.
 *
 * @throws ConfigError for the first mistake.
 */
export function checkFile(parsed: unknown, problems: ConfigProblems): ConfigFile {
  refuseUnsafeKeys(parsed, problems);
  refuseTablesForLists(configSchema, parsed, [], problems);
  const value = Value.Default(configSchema, parsed);
  const problem = firstProblem(value, problems);
  if (problem !== undefined) throw problem;
  return Value.Decode(configSchema, value);
}
