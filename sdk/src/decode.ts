// Turns PostgreSQL's text into JavaScript values, by the type's OID. Types that are not listed stay
// text.

import { parseArray } from "./array-literal.ts";
import { parseBytes } from "./bytea.ts";
import { parseInstant } from "./timestamp.ts";

/** Turns the text of one value, never NULL, into what the caller gets. */
export type Decoder = (text: string) => unknown;

const asText: Decoder = (text) => text;
const asNumber: Decoder = (text) => Number(text);
const asJson: Decoder = (text) => JSON.parse(text);

/*
 * One rule: what JavaScript has a type for is decoded, as `pg` does. int8 and numeric stay text
 * since a number would round them; date, time and timestamp stay text since they name no instant,
 * and a guessed zone would shift them. Each line: OID of the type, OID of its array type
 * (pg_type.typarray), decoder. OIDs of built-in types never change.
 */
const TYPES: readonly (readonly [type: number, arrayType: number, decoder: Decoder])[] = [
  [16, 1000, (text) => text === "t"], // bool
  [17, 1001, parseBytes], // bytea
  [18, 1002, asText], // "char"
  [19, 1003, asText], // name
  [20, 1016, asText], // int8
  [21, 1005, asNumber], // int2
  [23, 1007, asNumber], // int4
  [25, 1009, asText], // text
  [26, 1028, asNumber], // oid
  [114, 199, asJson], // json
  [142, 143, asText], // xml
  [650, 651, asText], // cidr
  [700, 1021, asNumber], // float4
  [701, 1022, asNumber], // float8
  [774, 775, asText], // macaddr8
  [790, 791, asText], // money
  [829, 1040, asText], // macaddr
  [869, 1041, asText], // inet
  [1042, 1014, asText], // bpchar
  [1043, 1015, asText], // varchar
  [1082, 1182, asText], // date
  [1083, 1183, asText], // time
  [1114, 1115, asText], // timestamp
  [1184, 1185, parseInstant], // timestamptz
  [1186, 1187, asText], // interval
  [1266, 1270, asText], // timetz
  [1560, 1561, asText], // bit
  [1562, 1563, asText], // varbit
  [1700, 1231, asText], // numeric
  [2950, 2951, asText], // uuid
  [3802, 3807, asJson], // jsonb
];

const DECODERS: ReadonlyMap<number, Decoder> = new Map(
  TYPES.flatMap(([type, arrayType, decoder]): [number, Decoder][] => [
    [type, decoder],
    [arrayType, (text) => parseArray(text, decoder)],
  ]),
);

/** The decoder of a type; for an OID that is not listed, one that returns the text. */
export function decoderOf(type: number): Decoder {
  return DECODERS.get(type) ?? asText;
}
