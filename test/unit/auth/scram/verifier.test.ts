// Unit tests of auth/scram/verifier.ts, with the example of RFC 7677 as the outside reference.
import { describe, expect, test } from "bun:test";
import { Secret } from "#auth/secret.ts";
import {
  decodeBase64,
  encodeBase64,
  SCRAM_ITERATIONS_MAX,
  xorBytes,
} from "#auth/scram/messages.ts";
import {
  checkScramPassword,
  deriveScramKeys,
  deriveScramVerifier,
  formatScramVerifier,
  hmacSha256,
  parseScramVerifier,
} from "#auth/scram/verifier.ts";

const salt = decodeBase64("W22ZaJ0SNY7soEsUEjb6gQ==") ?? new Uint8Array();
const KEY = encodeBase64(new Uint8Array(32).fill(7));

describe("SCRAM keys", () => {
  test("the example of RFC 7677 gives its proof and its server signature", async () => {
    const keys = await deriveScramKeys(new Secret("pencil"), salt, 4096);
    const nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const authMessage =
      `n=user,r=rOprNGfwEbeRWgbNEkqO,r=${nonce},` +
      `s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=${nonce}`;

    expect({
      proof: encodeBase64(xorBytes(keys.clientKey, hmacSha256(keys.storedKey, authMessage))),
      signature: encodeBase64(hmacSha256(keys.serverKey, authMessage)),
    }).toEqual({
      proof: "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
      signature: "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    });
  });
});

describe("SCRAM verifier", () => {
  test("a derived verifier survives formatting and parsing, and knows its password", async () => {
    const verifier = await deriveScramVerifier(new Secret("pencil"), salt, 10);

    const parsed = parseScramVerifier(formatScramVerifier(verifier));

    expect(parsed).toEqual(verifier);
    expect(await checkScramPassword(verifier, new Secret("pencil"))).toBe(true);
    expect(await checkScramPassword(verifier, new Secret("Pencil"))).toBe(false);
    expect(await checkScramPassword(verifier, new Secret(""))).toBe(false);
  });

  test("a password is checked in its SASLprep form", async () => {
    const verifier = await deriveScramVerifier(new Secret("I\u{ad}X\u{2168}"), salt, 10);

    expect(await checkScramPassword(verifier, new Secret("IXIX"))).toBe(true);
  });

  test.each([
    ["no verifier at all", "pencil"],
    ["another mechanism", `SCRAM-SHA-1$4096:AAAA$${KEY}:${KEY}`],
    ["no iterations", `SCRAM-SHA-256$:AAAA$${KEY}:${KEY}`],
    ["zero iterations", `SCRAM-SHA-256$0:AAAA$${KEY}:${KEY}`],
    ["a leading zero", `SCRAM-SHA-256$04096:AAAA$${KEY}:${KEY}`],
    ["too many iterations", `SCRAM-SHA-256$${SCRAM_ITERATIONS_MAX + 1}:AAAA$${KEY}:${KEY}`],
    ["an empty salt", `SCRAM-SHA-256$4096:$${KEY}:${KEY}`],
    ["a salt that is not base64", `SCRAM-SHA-256$4096:A$${KEY}:${KEY}`],
    ["a salt of 1025 bytes", `SCRAM-SHA-256$1:${encodeBase64(new Uint8Array(1025))}$${KEY}:${KEY}`],
    ["a short stored key", `SCRAM-SHA-256$4096:AAAA$AAAA:${KEY}`],
    ["a short server key", `SCRAM-SHA-256$4096:AAAA$${KEY}:AAAA`],
    ["a trailing line end", `SCRAM-SHA-256$4096:AAAA$${KEY}:${KEY}\n`],
  ])("a text with %s is not parsed", (_name, text) => {
    expect(parseScramVerifier(text)).toBeUndefined();
  });

  test("the largest iteration count and salt are parsed", () => {
    const largest = encodeBase64(new Uint8Array(1024));

    expect(
      parseScramVerifier(`SCRAM-SHA-256$${SCRAM_ITERATIONS_MAX}:${largest}$${KEY}:${KEY}`),
    ).toEqual({
      iterations: SCRAM_ITERATIONS_MAX,
      salt: new Uint8Array(1024),
      storedKey: new Uint8Array(32).fill(7),
      serverKey: new Uint8Array(32).fill(7),
    });
  });

  test.each([0, 1.5, SCRAM_ITERATIONS_MAX + 1])(
    "a derivation with %d iterations is refused",
    (iterations) => {
      expect(deriveScramVerifier(new Secret("x"), salt, iterations)).rejects.toThrow(RangeError);
    },
  );
});
