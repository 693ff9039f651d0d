// Tokens: what is accepted, and each way of being refused.
import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { TokenCodec, TOKEN_TEXT_CHARACTERS_MAX, TOKENS_MAX } from "#pool/consistency/token.ts";
import { tokenAudience } from "#pool/consistency/token-audience.ts";
import { deriveTokenKeys } from "#pool/consistency/token-keys.ts";
import type { Position } from "#pool/consistency/position.ts";

const AUDIENCE = tokenAudience("app", "acme");
const OLD = new Uint8Array(32).fill(1);
const NEW = new Uint8Array(32).fill(2);
const POSITION: Position = { systemIdentifier: 2n ** 63n + 5n, timeline: 3, lsn: 0x4_0000_1234n };

function codec(...keys: Uint8Array[]): TokenCodec {
  return new TokenCodec({ keys, wallNow: () => Date.UTC(2026, 10, 30) });
}

/** A payload that the codec would not write, with a right signature. */
function sign(payload: Uint8Array): string {
  const { mac } = deriveTokenKeys([NEW]).signing;
  const tag = createHmac("sha256", mac)
    .update(`walgate-token-v1\0${AUDIENCE}\0`)
    .update(payload)
    .digest();
  return `wg1.${Buffer.concat([payload, tag.subarray(0, 16)]).toString("base64url")}`;
}

function payloadOf(token: string): Uint8Array {
  return new Uint8Array(Buffer.from(token.slice(4), "base64url").subarray(0, -16));
}

test("a token gives back its position and is 68 safe characters", () => {
  const token = codec(NEW).mint([POSITION], AUDIENCE);

  expect(token).toMatch(/^wg1\.[A-Za-z0-9_-]{64}$/);
  expect(codec(NEW).read(token, AUDIENCE)).toEqual({ ok: true, positions: [POSITION] });
});

test("a token of the previous key is accepted, a token of no key is unknown", () => {
  const token = codec(OLD).mint([POSITION], AUDIENCE);

  expect(codec(NEW, OLD).read(token, AUDIENCE)).toEqual({ ok: true, positions: [POSITION] });
  expect(codec(NEW).read(token, AUDIENCE)).toEqual({ ok: false, reason: "unknown_key" });
});

test("another tenant's or database's token does not verify", () => {
  const token = codec(NEW).mint([POSITION], AUDIENCE);

  const readings = [tokenAudience("app", "other"), tokenAudience("other", "acme")].map((audience) =>
    codec(NEW).read(token, audience),
  );

  expect(readings).toEqual([
    { ok: false, reason: "bad_mac" },
    { ok: false, reason: "bad_mac" },
  ]);
});

test("several tokens joined as HTTP joins headers are merged", () => {
  const later = { ...POSITION, lsn: POSITION.lsn + 1n };
  const elsewhere = { ...POSITION, timeline: 4, lsn: 1n };
  const text = [[POSITION], [elsewhere, later]]
    .map((positions) => codec(NEW).mint(positions, AUDIENCE))
    .join(", ");

  expect(codec(NEW).read(text, AUDIENCE)).toEqual({ ok: true, positions: [later, elsewhere] });
});

test("eight tokens are read, nine are too long", () => {
  const token = codec(NEW).mint([POSITION], AUDIENCE);
  const join = (count: number): string => Array.from({ length: count }, () => token).join(",");

  expect(codec(NEW).read(join(TOKENS_MAX), AUDIENCE)).toEqual({ ok: true, positions: [POSITION] });
  expect(codec(NEW).read(join(TOKENS_MAX + 1), AUDIENCE)).toEqual({
    ok: false,
    reason: "too_long",
  });
});

test("text over the cap is refused before it is decoded", () => {
  const atCap = "A".repeat(TOKEN_TEXT_CHARACTERS_MAX);

  expect(codec(NEW).read(atCap, AUDIENCE)).toEqual({ ok: false, reason: "malformed" });
  expect(codec(NEW).read(`${atCap}A`, AUDIENCE)).toEqual({ ok: false, reason: "too_long" });
});

test("eight positions fit a token, nine and none do not", () => {
  const list = (count: number): Position[] =>
    Array.from({ length: count }, (_, index) => ({ ...POSITION, timeline: index + 1 }));

  const eight = codec(NEW).mint(list(8), AUDIENCE);

  expect(codec(NEW).read(eight, AUDIENCE)).toEqual({ ok: true, positions: list(8) });
  expect(() => codec(NEW).mint(list(9), AUDIENCE)).toThrow(RangeError);
  expect(() => codec(NEW).mint([], AUDIENCE)).toThrow(RangeError);
});

test("tokens that ask for more than eight positions together are too long", () => {
  const of = (timeline: number): string => codec(NEW).mint([{ ...POSITION, timeline }], AUDIENCE);
  const five = codec(NEW).mint(
    [1, 2, 3, 4, 5].map((timeline) => ({ ...POSITION, timeline })),
    AUDIENCE,
  );

  const eight = codec(NEW).read([five, of(6), of(7), of(8)].join(","), AUDIENCE);
  const nine = codec(NEW).read([five, of(6), of(7), of(8), of(9)].join(","), AUDIENCE);

  expect([eight.ok, nine]).toEqual([true, { ok: false, reason: "too_long" }]);
});

test("a position that does not fit its field is refused instead of being cut", () => {
  const bad: Position[] = [
    { ...POSITION, lsn: 2n ** 64n },
    { ...POSITION, systemIdentifier: -1n },
    { ...POSITION, timeline: 2 ** 32 },
  ];

  for (const position of bad)
    expect(() => codec(NEW).mint([position], AUDIENCE)).toThrow(RangeError);
});

test("text that is not exactly a token's is malformed", () => {
  const token = codec(NEW).mint([POSITION], AUDIENCE);
  const texts = [
    "",
    ",",
    `${token},`,
    "wg1.",
    "wg1.AAAA",
    token.slice(4),
    `WG1.${token.slice(4)}`,
    `wg2.${token.slice(4)}`,
    `${token}A`,
    token.slice(0, -1),
    `${token.slice(0, 20)} ${token.slice(20)}`,
    `${token}=`,
    `${token.slice(0, -1)}+`,
  ];

  const readings = texts.map((text) => codec(NEW).read(text, AUDIENCE));

  expect(readings).toEqual(texts.map(() => ({ ok: false, reason: "malformed" })));
});

test("a critical flag that this version does not know makes the token unreadable, another flag does not", () => {
  const payload = payloadOf(codec(NEW).mint([POSITION], AUDIENCE));
  const withFlags = (flags: number): string => {
    const changed = Uint8Array.from(payload);
    changed[1] = flags;
    return sign(changed);
  };

  const readings = [0x0f, 0x10, 0x80].map((flags) => codec(NEW).read(withFlags(flags), AUDIENCE));

  expect(readings).toEqual([
    { ok: true, positions: [POSITION] },
    { ok: false, reason: "critical" },
    { ok: false, reason: "critical" },
  ]);
});

test("a signed payload of another format or with a wrong entry count is malformed", () => {
  const payload = payloadOf(codec(NEW).mint([POSITION], AUDIENCE));
  const changed = ([at, value]: readonly [number, number]): string => {
    const bytes = Uint8Array.from(payload);
    bytes[at] = value;
    return sign(bytes);
  };

  const readings = (
    [
      [0, 2],
      [3, 0],
      [3, 2],
      [3, 9],
    ] as const
  ).map((change) => codec(NEW).read(changed(change), AUDIENCE));

  expect(readings).toEqual(readings.map(() => ({ ok: false, reason: "malformed" })));
});
