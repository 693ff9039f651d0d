// A single changed byte in any SCRAM message never ends in an authenticated login on both ends.
import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { ScramError } from "#auth/scram/client-exchange.ts";
import { createClient, createServer } from "#test/unit/auth/support/scram.ts";

type MessageName = "clientFirst" | "serverFirst" | "clientFinal" | "serverFinal";

interface Flip {
  readonly message: MessageName;
  readonly at: number;
  readonly mask: number;
}

/** Who believed the other one after an exchange with one byte changed on the way. */
async function run(flip: Flip | undefined): Promise<{ server: boolean; client: boolean }> {
  const bend = (name: MessageName, bytes: Uint8Array): Uint8Array => {
    if (flip?.message !== name) return bytes;
    const index = flip.at % bytes.byteLength;
    return bytes.map((byte, position) => (position === index ? byte ^ flip.mask : byte));
  };
  const client = createClient();
  const server = createServer();
  let isLetIn = false;
  try {
    const { mechanism, message } = client.start(["SCRAM-SHA-256"]);
    const started = await server.start(mechanism, bend("clientFirst", message));
    if (!started.ok) return { server: false, client: false };
    const final = await client.continue(bend("serverFirst", started.serverFirst));
    const finished = server.finish(bend("clientFinal", final));
    if (!finished.ok) return { server: false, client: client.isVerified };
    isLetIn = true;
    client.finish(bend("serverFinal", finished.serverFinal));
  } catch (error) {
    if (!(error instanceof ScramError)) throw error;
  }
  return { server: isLetIn, client: client.isVerified };
}

const byte = fc.record({ at: fc.nat(300), mask: fc.integer({ min: 1, max: 255 }) });

describe("SCRAM", () => {
  test("an exchange that nobody touches authenticates both ends", async () => {
    expect(await run(undefined)).toEqual({ server: true, client: true });
  });

  test.each(["clientFirst", "serverFirst", "clientFinal"] as const)(
    "a changed byte in %s lets nobody in",
    async (message) => {
      await fc.assert(
        fc.asyncProperty(byte, async ({ at, mask }) => {
          expect(await run({ message, at, mask })).toEqual({ server: false, client: false });
        }),
        { numRuns: 300 },
      );
    },
  );

  test("a changed byte in serverFinal leaves the client without a proof", async () => {
    await fc.assert(
      fc.asyncProperty(byte, async ({ at, mask }) => {
        const result = await run({ message: "serverFinal", at, mask });
        expect(result.client).toBe(false);
      }),
      { numRuns: 300 },
    );
  });
});
