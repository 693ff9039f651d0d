// Laws: frames do not depend on how the bytes are torn; what is written reads back; and no bytes make a reader throw.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { encodeErrorResponse, readErrorFields } from "#pool/wire/backend-messages.ts";
import { FrameSplitter } from "#pool/wire/frame-splitter.ts";
import {
  encodeBindHead,
  encodeParse,
  encodeQuery,
  readBind,
  readNamedObject,
  readParse,
  readQuery,
} from "#pool/wire/frontend-messages.ts";
import { latin1 } from "#pool/wire/text.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { readStartupPacket, startupPacketSize } from "#pool/wire/startup-packet.ts";
import { parseText, queryText } from "#test/support/message-text.ts";
import { client, int32 } from "#test/support/wire-frames.ts";

const encoder = new TextEncoder();
const text = fc
  .string({ unit: "grapheme", maxLength: 40 })
  .map((value) => value.replaceAll("\0", ""));
const sizes = fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 6 });

/** Bodies of small frames and, now and then, of one that is streamed. */
const frame = fc
  .tuple(
    fc.integer({ min: 65, max: 122 }),
    fc.oneof(fc.nat(40), fc.integer({ min: 65_000, max: 70_000 })),
  )
  .map(([type, size]) =>
    concatBytes([new Uint8Array([type]), int32(size + 4), new Uint8Array(size).fill(type)]),
  );

/** Bytes of all frames joined, with a mark where each begins. */
function split(chunks: readonly Uint8Array[], isSuspending: boolean): string[] {
  const events: string[] = [];
  let large = 0;
  const splitter = new FrameSplitter(
    {
      frame: (type, chunk, start, end) => {
        const bytes = chunk.subarray(start, end);
        events.push(`${type} ${bytes.length} ${Bun.hash(bytes)}`);
        if (isSuspending) splitter.suspend();
      },
      largeStart: (type, prefix, size) => {
        large = prefix.length;
        events.push(`large ${type} ${size} ${Bun.hash(prefix)}`);
      },
      largeBytes: (bytes, isLast) => {
        large += bytes.length;
        if (isLast) events.push(`end ${large}`);
      },
      violation: (reason) => events.push(reason),
    },
    100_000,
  );
  for (const chunk of chunks) {
    splitter.push(chunk);
    while (splitter.isSuspended) splitter.resume();
  }
  return events;
}

function cut(bytes: Uint8Array, chunkSizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let turn = 0;
  for (let at = 0; at < bytes.length;) {
    const size = chunkSizes[turn++ % chunkSizes.length] ?? 1;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

test("a stream torn anywhere gives the frames of the whole one, suspended or not", () => {
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 8 }),
      sizes,
      fc.boolean(),
      (frames, chunkSizes, isSuspending) => {
        const bytes = concatBytes(frames);

        const torn = split(cut(bytes, chunkSizes), isSuspending);

        expect(torn).toEqual(split([bytes], false));
        expect(torn.filter((event) => !event.startsWith("end"))).toHaveLength(frames.length);
      },
    ),
  );
});

test("random bytes end in frames or in one violation", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), sizes, (bytes, chunkSizes) => {
      const events = split(cut(bytes, chunkSizes), false);

      expect(events).toEqual(split([bytes], false));
    }),
  );
});

test("what a client writes is what is read of it", () => {
  fc.assert(
    fc.property(
      text,
      text,
      text,
      fc.array(fc.nat(100_000), { maxLength: 5 }),
      (name, portal, sql, types) => {
        const parse = client.parse(name, sql, types);
        const parsed = readParse(parse);
        const bind = client.bind(portal, name, [sql, null]);
        const bound = readBind(bind);
        if (parsed === undefined || bound === undefined) throw new Error("unreadable");
        const bytesOfName = encoder.encode(name);

        expect(parseText(parse)?.text).toBe(sql);
        expect(parsed.name).toBe(latin1(bytesOfName, 0, bytesOfName.length));
        expect(encodeParse(bytesOfName, parse.subarray(parsed.tailOffset))).toEqual(parse);
        expect(
          concatBytes([
            encodeBindHead(bind, 0, bound, bytesOfName),
            bind.subarray(bound.tailOffset),
          ]),
        ).toEqual(bind);
        expect(queryText(encodeQuery(sql))).toBe(sql);
        expect(readNamedObject(client.describeStatement(name))?.name).toBe(parsed.name);
      },
    ),
  );
});

test("an error's texts read back, but for NULs", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (message, detail) => {
      const fields = readErrorFields(
        encodeErrorResponse({ severity: "ERROR", sqlState: "XX000", message, detail }),
      );

      expect([fields.get("M"), fields.get("D")]).toEqual([
        message.replaceAll("\0", ""),
        detail.replaceAll("\0", ""),
      ]);
    }),
  );
});

test("no bytes make a reader throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 8, maxLength: 80 }), (bytes) => {
      readQuery(bytes);
      readParse(bytes);
      readBind(bytes);
      readNamedObject(bytes);
      readErrorFields(bytes);
      if (typeof startupPacketSize(bytes) === "number") readStartupPacket(bytes);
    }),
  );
});
