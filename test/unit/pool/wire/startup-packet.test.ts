// The packets before the first message, well-formed and not.
import { describe, expect, test } from "bun:test";
import { concatBytes } from "#pool/wire/message-types.ts";
import {
  STARTUP_PACKET_MAX,
  readStartupPacket,
  startupPacketSize,
} from "#pool/wire/startup-packet.ts";
import { int32 } from "#test/support/wire-frames.ts";

function packet(code: number, body: string | Uint8Array = new Uint8Array(0)): Uint8Array {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return concatBytes([int32(8 + bytes.length), int32(code), bytes]);
}

const PROTOCOL_3_0 = 0x30000;

describe("size", () => {
  test("three bytes are not enough to know it", () => {
    expect(startupPacketSize(new Uint8Array(3))).toBe("incomplete");
  });

  test.each([
    [7, "invalid"],
    [8, 8],
    [STARTUP_PACKET_MAX, STARTUP_PACKET_MAX],
    [STARTUP_PACKET_MAX + 1, "invalid"],
    [-1, "invalid"],
    // "GET " as a length.
    [0x47455420, "invalid"],
  ] as const)("a length field of %d gives %p", (length, expected) => {
    expect(startupPacketSize(int32(length))).toBe(expected);
  });
});

describe("StartupMessage", () => {
  test("its parameters come in order, the last of two of one name counts", () => {
    const result = readStartupPacket(
      packet(PROTOCOL_3_0, "user\0app\0database\0shop\0user\0other\0\0"),
    );

    expect(result).toEqual({
      kind: "startup",
      protocolMinor: 0,
      parameters: new Map([
        ["user", "other"],
        ["database", "shop"],
      ]),
    });
  });

  test("a newer minor version is reported as it is", () => {
    expect(readStartupPacket(packet(0x30002, "user\0app\0\0"))).toEqual({
      kind: "startup",
      protocolMinor: 2,
      parameters: new Map([["user", "app"]]),
    });
  });

  test.each([
    ["without a terminator", "user\0app\0"],
    ["with a value cut off", "user\0app"],
    ["with bytes behind the terminator", "user\0app\0\0x\0\0"],
    ["with an empty name before its end", "\0app\0user\0app\0\0"],
    ["empty", ""],
  ])("one %s is invalid", (_, body) => {
    expect(readStartupPacket(packet(PROTOCOL_3_0, body))).toEqual({
      kind: "invalid",
      reason: "invalid startup packet layout: expected terminator as last byte",
    });
  });

  test("protocol 2 is refused by name", () => {
    expect(readStartupPacket(packet(0x20000, "user\0app\0\0"))).toEqual({
      kind: "invalid",
      reason: "unsupported frontend protocol 2.0: server supports 3.0 to 3.0",
    });
  });
});

describe("requests", () => {
  test("SSLRequest and GSSENCRequest have no body", () => {
    expect([
      readStartupPacket(packet(80_877_103)).kind,
      readStartupPacket(packet(80_877_104)).kind,
      readStartupPacket(packet(80_877_103, "x")).kind,
    ]).toEqual(["ssl", "gssenc", "invalid"]);
  });

  test.each([
    [3, "invalid"],
    [4, "cancel"],
    [256, "cancel"],
    [257, "invalid"],
  ] as const)("a cancel key of %d bytes is %s", (size, kind) => {
    const body = concatBytes([int32(42), new Uint8Array(size).fill(7)]);

    expect(readStartupPacket(packet(80_877_102, body)).kind).toBe(kind);
  });

  test("a CancelRequest gives its process id and key", () => {
    const body = concatBytes([int32(42), int32(0x01020304)]);

    expect(readStartupPacket(packet(80_877_102, body))).toEqual({
      kind: "cancel",
      processId: 42,
      secretKey: new Uint8Array([1, 2, 3, 4]),
    });
  });
});
