// The kinds of values that configuration keys have: each is a TypeBox schema that says what it expects and decodes it.
// An error message is made from `expected` alone, never from the value: any value may be a secret in the wrong place.
import { isIP } from "node:net";
import {
  Kind,
  type StaticDecode,
  type TArray,
  type TInteger,
  type TNumber,
  type TObject,
  type TRecord,
  type TSchema,
  type TString,
  type TTransform,
  type TUnsafe,
  Type,
  TypeRegistry,
} from "@sinclair/typebox";
import { Secret } from "#auth/secret.ts";

export interface Address {
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
}

/** Longest timer of JavaScript, 2^31 - 1 ms (24.8 days), in seconds; a longer one fires at once. */
export const SECONDS_MAX = 2_147_483;

/** Longest name or value that is sent to PostgreSQL in a startup packet, whose own limit is 10,000 bytes. */
const WIRE_TEXT_CHARACTERS_MAX = 1024;

/** Longest host name, of RFC 1035. */
const HOST_CHARACTERS_MAX = 253;

const PORT_MAX = 65_535;

const BYTES_PER_UNIT: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  KB: 1024,
  MB: 1024 ** 2,
  GB: 1024 ** 3,
};

interface KeyOptions {
  readonly description: string;
  readonly default?: unknown;
}

interface RangeOptions extends KeyOptions {
  readonly minimum: number;
  readonly maximum: number;
}

/** A kind of TypeBox's registry whose schemas carry their own check, for rules that no pattern can state. */
const CHECKED_KIND = "Checked";
TypeRegistry.Set(CHECKED_KIND, (schema: { readonly accepts: (value: unknown) => boolean }, value) =>
  schema.accepts(value),
);

function checked<T>(
  accepts: (value: unknown) => boolean,
  options: KeyOptions & {
    readonly type: string;
    readonly unit?: string;
    readonly expected: string;
  },
): TUnsafe<T> {
  return Type.Unsafe<T>({ ...options, [Kind]: CHECKED_KIND, accepts });
}

/** A string that passes a check. */
export function textThat(
  accepts: (text: string) => boolean,
  options: KeyOptions & { readonly expected: string },
): TUnsafe<string> {
  return checked<string>((value) => typeof value === "string" && accepts(value), {
    ...options,
    type: "string",
  });
}

/** The same schema with a default, for keys that have one only in one of their places. */
export function withDefault<T extends TSchema>(schema: T, value: unknown): T {
  return { ...schema, default: value };
}

export function integer(options: RangeOptions): TInteger {
  return Type.Integer({
    ...options,
    expected: `an integer from ${options.minimum} to ${options.maximum}`,
  });
}

/** A duration in seconds that may be 0, whose meaning is added to the description; fractions are allowed. */
export function secondsOrZero(meaningOfZero: string, options: KeyOptions): TNumber {
  return Type.Number({
    ...options,
    description: `${options.description} 0 means ${meaningOfZero}.`,
    minimum: 0,
    maximum: SECONDS_MAX,
    unit: "seconds",
    expected: `a number of seconds from 0 to ${SECONDS_MAX}`,
  });
}

/** A duration in seconds that must end: every wait has a deadline. One millisecond is the shortest timer. */
export function seconds(options: KeyOptions): TNumber {
  return Type.Number({
    ...options,
    minimum: 0.001,
    maximum: SECONDS_MAX,
    unit: "seconds",
    expected: `a number of seconds from 0.001 to ${SECONDS_MAX}`,
  });
}

/** A number of bytes from an integer or from text such as "16MB" (powers of 1024); undefined when it is neither. */
export function parseByteSize(value: string | number): number | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : undefined;
  const match = /^(\d{1,15}) ?([KMG]?B|)$/.exec(value);
  const factor = BYTES_PER_UNIT[match?.[2] ?? "none"];
  if (match === null || factor === undefined) return undefined;
  const bytes = Number(match[1]) * factor;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function formatByteSize(bytes: number): string {
  for (const unit of ["GB", "MB", "KB"]) {
    const factor = BYTES_PER_UNIT[unit] ?? 1;
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor}${unit}`;
  }
  return `${bytes}`;
}

export function byteSize({
  minimum,
  maximum,
  ...options
}: RangeOptions): TTransform<TUnsafe<string | number>, number> {
  const accepts = (value: unknown): boolean => {
    if (typeof value !== "string" && typeof value !== "number") return false;
    const bytes = parseByteSize(value);
    return bytes !== undefined && bytes >= minimum && bytes <= maximum;
  };
  const expected = `a size such as "16MB" or an integer of bytes, from ${formatByteSize(minimum)} to ${formatByteSize(maximum)}`;
  return Type.Transform(
    checked<string | number>(accepts, { ...options, type: "size", unit: "bytes", expected }),
  )
    .Decode((value): number => parseByteSize(value) ?? Number.NaN)
    .Encode((bytes) => bytes);
}

/** One of a closed list of words; those in `notBuilt` are known, so that they are refused with the true reason. */
export function oneOf<const T extends readonly [string, ...string[]]>(
  words: T,
  options: KeyOptions & { readonly notBuilt?: readonly string[] },
): TUnsafe<T[number]> {
  return Type.Unsafe<T[number]>(
    Type.String({
      ...options,
      pattern: `^(?:${words.join("|")})$`,
      expected: words.map((word) => `"${word}"`).join(" or "),
    }),
  );
}

/** Text that travels in the wire protocol, where a NUL would end it early and start the next field. */
export function wireText(options: KeyOptions): TString {
  return Type.String({
    ...options,
    pattern: "^[^\\u0000]+$",
    maxLength: WIRE_TEXT_CHARACTERS_MAX,
    expected: `a string of 1 to ${WIRE_TEXT_CHARACTERS_MAX} characters without NUL`,
  });
}

/** A secret in the file itself. It prints as *** from here on. */
export function secretText(options: KeyOptions): TTransform<TString, Secret> {
  return Type.Transform(
    Type.String({
      ...options,
      pattern: "^[^\\u0000]+$",
      expected: "a string that is not empty and has no NUL",
    }),
  )
    .Decode((text): Secret => new Secret(text))
    .Encode((secret) => secret.reveal());
}

/** The name of an environment variable, or of a file relative to the configuration's folder. */
export function referenceTo(
  what: "an environment variable" | "a file",
  options: KeyOptions,
): TString {
  return Type.String({
    ...options,
    pattern: "^[^\\u0000]+$",
    maxLength: 4096,
    expected: `the name of ${what}`,
  });
}

/** "host:port", "1.2.3.4:port" or "[::1]:port"; undefined when it is not that. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const port = Number(match[3]);
  const host = match[1] ?? match[2];
  if (host === undefined || host.length > HOST_CHARACTERS_MAX || port > PORT_MAX) return undefined;
  if (match[1] !== undefined && isIP(host) !== 6) return undefined;
  return { host, port };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function address(portMin: number, options: KeyOptions): TTransform<TUnsafe<string>, Address> {
  const accepts = (text: string): boolean => (parseAddress(text)?.port ?? -1) >= portMin;
  const expected = `"host:port" with a port from ${portMin} to ${PORT_MAX}`;
  return Type.Transform(textThat(accepts, { ...options, expected }))
    .Decode((text): Address => parseAddress(text) ?? { host: "", port: -1 })
    .Encode(formatAddress);
}

/** Where we listen; port 0 lets the system choose. */
export function listenAddress(options: KeyOptions): TTransform<TUnsafe<string>, Address> {
  return address(0, options);
}

export function serverAddress(options: KeyOptions): TTransform<TUnsafe<string>, Address> {
  return address(1, options);
}

/** An array of values of one kind; at least one when `minItems` says so. */
export function list<T extends TSchema>(
  items: T,
  options: KeyOptions & { readonly minItems?: number },
): TArray<T> {
  return Type.Array(items, { ...options, expected: "an array" });
}

/** A table of named things, such as [databases.NAME]. */
export function tableOf<T extends TSchema>(
  values: T,
  namePattern: string,
  options: KeyOptions & { nameExpected: string },
): TRecord<TString, T> {
  return Type.Record(Type.String({ pattern: namePattern }), values, {
    ...options,
    additionalProperties: false,
    expected: "a table",
  });
}

/** A table with a closed set of keys. */
export function table<T extends Record<string, TSchema>>(
  properties: T,
  options: KeyOptions,
): TObject<T> {
  return Type.Object(properties, { ...options, additionalProperties: false, expected: "a table" });
}

export type Decoded<T extends TSchema> = StaticDecode<T>;
