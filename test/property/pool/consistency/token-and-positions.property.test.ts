// Laws of tokens, of merging and of the page header rule, for any input.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { formatLsn, normaliseLsn, parseLsn } from "#pool/consistency/lsn.ts";
import { mergePositions } from "#pool/consistency/merge-positions.ts";
import type { Position } from "#pool/consistency/position.ts";
import { TokenCodec } from "#pool/consistency/token.ts";
import { tokenAudience } from "#pool/consistency/token-audience.ts";

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const position: fc.Arbitrary<Position> = fc.record({
  systemIdentifier: u64,
  timeline: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  lsn: u64,
});
/** Few histories, so that positions of one meet often. */
const nearPosition: fc.Arbitrary<Position> = fc.record({
  systemIdentifier: fc.bigInt({ min: 1n, max: 2n }),
  timeline: fc.integer({ min: 1, max: 2 }),
  lsn: fc.bigInt({ min: 0n, max: 5n }),
});
const positions = fc.array(nearPosition, { maxLength: 6 });
const tokenPositions = fc
  .array(position, { minLength: 1, maxLength: 8 })
  .map((list) => mergePositions(list, []));
const name = fc.string({ unit: "binary", maxLength: 12 });
const geometry = fc.record({
  blockSize: fc.constantFrom(1024, 8192, 65_536),
  segmentSize: fc.constantFrom(2 ** 20, 2 ** 24, 2 ** 30),
});

const codec = new TokenCodec({ keys: [new Uint8Array(32).fill(7)], wallNow: () => 0 });

test("reading what was minted gives the same positions, whatever the audience is called", () => {
  fc.assert(
    fc.property(tokenPositions, name, name, (list, database, tenant) => {
      const audience = tokenAudience(database, tenant);
      expect(codec.read(codec.mint(list, audience), audience)).toEqual({
        ok: true,
        positions: list,
      });
    }),
  );
});

test("a token with any one bit flipped never verifies", () => {
  fc.assert(
    fc.property(tokenPositions, fc.nat(), fc.nat(7), (list, at, bit) => {
      const audience = tokenAudience("app", "acme");
      const bytes = Buffer.from(codec.mint(list, audience), "latin1");
      const index = at % bytes.length;
      bytes[index] = (bytes[index] ?? 0) ^ (1 << bit);
      expect(codec.read(bytes.toString("latin1"), audience).ok).toBe(false);
    }),
    { numRuns: 500 },
  );
});

test("a token with any one bit of its decoded bytes flipped never verifies", () => {
  fc.assert(
    fc.property(tokenPositions, fc.nat(), fc.nat(7), (list, at, bit) => {
      const audience = tokenAudience("app", "acme");
      const bytes = Buffer.from(codec.mint(list, audience).slice(4), "base64url");
      const index = at % bytes.length;
      bytes[index] = (bytes[index] ?? 0) ^ (1 << bit);
      expect(codec.read(`wg1.${bytes.toString("base64url")}`, audience).ok).toBe(false);
    }),
    { numRuns: 500 },
  );
});

test("a token never verifies for another database or tenant", () => {
  const pair = fc.tuple(name, name);
  fc.assert(
    fc.property(tokenPositions, pair, pair, (list, [database, tenant], [other, stranger]) => {
      fc.pre(database !== other || tenant !== stranger);
      const token = codec.mint(list, tokenAudience(database, tenant));
      expect(codec.read(token, tokenAudience(other, stranger)).ok).toBe(false);
    }),
  );
});

test("any text is read without throwing, and none is a token", () => {
  const text = fc.oneof(
    fc.string(),
    fc.base64String().map((body) => `wg1.${body}`),
  );
  fc.assert(fc.property(text, (any) => expect(codec.read(any, "a").ok).toBe(false)));
});

test("merging is associative, commutative and idempotent, and asks for no less than each part", () => {
  fc.assert(
    fc.property(positions, positions, positions, (a, b, c) => {
      const ab = mergePositions(a, b);
      expect(mergePositions(ab, c)).toEqual(mergePositions(a, mergePositions(b, c)));
      expect(mergePositions(b, a)).toEqual(ab);
      expect(mergePositions(ab, ab)).toEqual(ab);
      for (const part of [...a, ...b]) {
        const kept = ab.filter(
          (other) =>
            other.systemIdentifier === part.systemIdentifier && other.timeline === part.timeline,
        );
        expect(kept).toHaveLength(1);
        expect(kept.every((other) => other.lsn >= part.lsn)).toBe(true);
      }
    }),
  );
});

test("a normalised position is never higher, at most a header lower, stays itself, and keeps order", () => {
  // Offsets close to a page's start, where something happens.
  const near = fc
    .tuple(fc.bigInt({ min: 0n, max: 2n ** 40n }), fc.integer({ min: 0, max: 60 }), geometry)
    .map(([page, offset, sizes]) => ({
      lsn: page * BigInt(sizes.blockSize) + BigInt(offset),
      sizes,
    }));
  fc.assert(
    fc.property(near, fc.bigInt({ min: 0n, max: 100n }), ({ lsn, sizes }, step) => {
      const normal = normaliseLsn(lsn, sizes);
      expect(normal <= lsn && lsn - normal <= 40n).toBe(true);
      expect(normaliseLsn(normal, sizes)).toBe(normal);
      expect(normaliseLsn(lsn + step, sizes) >= normal).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("an LSN survives being printed and read", () => {
  fc.assert(fc.property(u64, (lsn) => expect(parseLsn(formatLsn(lsn))).toBe(lsn)));
});
