// The simulation's servers against real PostgreSQL: random pipelines of statements that both know, to a session of each, give the same messages.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { RawClient } from "#test/support/raw-client.ts";
import { SeededRandom, testSeed } from "#test/support/seeded-random.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { client, describeReplies, describeRequests } from "#test/support/wire-frames.ts";
import { ServerBench } from "../unit/simulation/server/server-bench.ts";

const SESSIONS = 300;
const PIPELINES_MAX = 6;
const MESSAGES_MAX = 6;
const TEXTS = [
  "BEGIN",
  "BEGIN READ ONLY",
  "COMMIT",
  "ROLLBACK",
  "SHOW application_name",
  "SET application_name TO 'x'",
  "SELECT pg_catalog.set_config('application_name', E'y', false)",
  "RESET ALL",
  "DISCARD ALL",
  "SELEC",
  "",
] as const;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
});

afterAll(() => cluster.stop());

/**
 * One message, or a Bind and its Execute: of a portal that has run, or that was open when its block failed, the simulated server knows
 * less, and no client of the simulation uses one.
 */
function message(random: SeededRandom): Uint8Array {
  const statement = pick(random, ["", "a"]);
  const portal = pick(random, ["", "p"]);
  switch (random.below(8)) {
    case 0:
    case 1:
      return client.parse(statement, pick(random, TEXTS));
    case 2:
      return client.bind(portal, statement);
    case 3:
    case 4:
      return concatBytes([client.bind(portal, statement), client.execute(portal)]);
    case 5:
      return client.describePortal(portal);
    case 6:
      return client.describeStatement(statement);
    default:
      return random.chance(0.5) ? client.closePortal(portal) : client.closeStatement(statement);
  }
}

function pipeline(random: SeededRandom): Uint8Array {
  if (random.chance(0.4)) return client.query(pick(random, TEXTS));
  const messages = Array.from({ length: 1 + random.below(MESSAGES_MAX) }, () => message(random));
  return concatBytes([...messages, client.sync()]);
}

function pick<T>(random: SeededRandom, choices: readonly T[]): T {
  const choice = choices[random.below(choices.length)];
  if (choice === undefined) throw new Error("nothing to choose from");
  return choice;
}

/** Notices are not simulated, and the texts of errors are PostgreSQL's own. */
function comparable(replies: readonly string[]): string[] {
  return replies
    .filter((line) => !line.startsWith("N "))
    .map((line) => (line.startsWith("E ") ? line.slice(0, 7) : line));
}

async function ask(session: RawClient, bytes: Uint8Array): Promise<string[]> {
  session.send(bytes);
  const frames: Uint8Array[] = [];
  for (;;) {
    const { type, frame } = await session.message();
    frames.push(frame);
    if (type === "Z") return describeReplies(concatBytes(frames));
  }
}

test(`${SESSIONS} sessions of up to ${PIPELINES_MAX} pipelines are answered alike`, async () => {
  const first = testSeed();
  console.log(`seeds from ${first}; WALGATE_TEST_SEED=${first} repeats them`);
  const { port } = cluster.primary;
  for (let seed = first; seed < first + SESSIONS; seed++) {
    const random = new SeededRandom(seed);
    const simulated = new ServerBench(seed).login();
    const real = await RawClient.login({ port, password: cluster.passwords.app });
    const requests: string[][] = [];
    for (let i = 0; i < PIPELINES_MAX; i++) {
      const bytes = pipeline(random);
      requests.push(describeRequests(bytes));

      const expected = comparable(await ask(real, bytes));

      expect({ seed, requests, replies: comparable(simulated.ask(bytes)) }).toEqual({
        seed,
        requests,
        replies: expected,
      });
    }
    real.terminate();
  }
});
