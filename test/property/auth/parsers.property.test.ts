// Input of any kind gives a value or a refusal, and never an exception.
import fc from "fast-check";
import { expect, test } from "bun:test";
import { parseUserFile } from "#auth/passwords/user-list.ts";
import { KeySet } from "#auth/jwt/key-set.ts";
import { TokenVerifier } from "#auth/jwt/token-verifier.ts";
import { tlsServerEndPoint } from "#auth/scram/channel-binding.ts";
import { prepareScramPassword } from "#auth/scram/saslprep.ts";
import {
  deriveScramVerifier,
  formatScramVerifier,
  parseScramVerifier,
} from "#auth/scram/verifier.ts";
import { Secret } from "#auth/secret.ts";
import { createServer, toBytes } from "#test/unit/auth/support/scram.ts";
import { HS256_SECRET, ISSUER, NOW_MS, rawToken } from "#test/unit/auth/support/tokens.ts";

const bytes = fc.uint8Array({ maxLength: 200 });
const scramLike = fc
  .array(
    fc.constantFrom("n", "y", "p", "=", ",", "r", "c", "s", "i", "a", "m", "biws", "1", "\0"),
    {
      maxLength: 20,
    },
  )
  .map((parts) => toBytes(parts.join("")));

test("a SCRAM server takes any bytes without an exception and lets nobody in", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(bytes, scramLike), fc.oneof(bytes, scramLike), async (one, two) => {
      const server = createServer();
      await server.start("SCRAM-SHA-256", one);
      expect(server.finish(two).ok).toBe(false);
    }),
  );
});

test("any text is a verifier or is not one, and any certificate has binding data or not", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), bytes, (text, der) => {
      parseScramVerifier(text);
      parseScramVerifier(`SCRAM-SHA-256$${text}`);
      tlsServerEndPoint(der);
      parseUserFile(text);
      KeySet.parse(text);
    }),
  );
});

test("any JSON document is a key set or is not one", () => {
  const members = fc.dictionary(
    fc.constantFrom("kty", "crv", "x", "y", "n", "e", "use", "alg", "kid", "key_ops"),
    fc.oneof(fc.constantFrom("RSA", "EC", "OKP", "P-256", "AQAB", "sig"), fc.jsonValue()),
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(members, fc.jsonValue())), (keys) => {
      expect(typeof KeySet.parse({ keys }).ok).toBe("boolean");
    }),
  );
});

test("a verifier survives formatting and parsing", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string(),
      fc.uint8Array({ minLength: 1, maxLength: 64 }),
      fc.integer({ min: 1, max: 3 }),
      async (password, salt, iterations) => {
        const verifier = await deriveScramVerifier(new Secret(password), salt, iterations);
        expect(parseScramVerifier(formatScramVerifier(verifier))).toEqual(verifier);
      },
    ),
  );
});

test("preparing a password twice changes nothing more", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (password) => {
      const prepared = prepareScramPassword(password);
      expect(prepareScramPassword(prepared)).toBe(prepared);
    }),
  );
});

test("an entry of a user file is read back as it was written", () => {
  const text = fc
    .string({ minLength: 1 })
    .filter(
      (value) => !/[\r\n]/.test(value) && !value.startsWith("SCRAM") && !value.startsWith("md5"),
    );
  const quote = (value: string): string => `"${value.replaceAll('"', '""')}"`;
  fc.assert(
    fc.property(text, text, (name, secret) => {
      const result = parseUserFile(`${quote(name)} ${quote(secret)}`);
      expect(
        result.ok && result.entries.map((entry) => [entry.name, entry.secret.reveal()]),
      ).toEqual([[name, secret]]);
    }),
  );
});

test("a token that is not signed is refused without an exception and never repeated", async () => {
  const verifier = new TokenVerifier({
    issuers: [
      {
        issuer: ISSUER,
        audiences: ["walgate"],
        keys: { kind: "secret", secret: new Secret(HS256_SECRET) },
      },
    ],
    nowMs: () => NOW_MS,
  });
  const header = fc.record({
    alg: fc.oneof(fc.constant("HS256"), fc.jsonValue()),
    kid: fc.jsonValue(),
  });
  const claims = fc.record({
    iss: fc.oneof(fc.constant(ISSUER), fc.jsonValue()),
    exp: fc.jsonValue(),
  });
  const crafted = fc
    .tuple(header, claims, fc.base64String())
    .map(([head, body, signature]) =>
      rawToken(JSON.stringify(head), JSON.stringify(body), signature),
    );
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string(), crafted), async (text) => {
      const result = await verifier.verify(new Secret(text));
      expect(result.ok).toBe(false);
      if (text.length > 12) expect(JSON.stringify(result)).not.toContain(text);
    }),
  );
});
