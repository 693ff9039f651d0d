// The same statements, sent to PostgreSQL itself and through every door, have the same rows, command tags and errors, and leave the same
// behind. Each way is compared with PostgreSQL asked in the same query mode, and both modes with each other.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { caughtUp } from "#gateway/embedded/caught-up.ts";
import type { Trust } from "#test/support/register-sessions.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type SqlOutcome, ofBothModes, seenBy } from "#test/support/sql-outcome.ts";
import {
  READS,
  SESSION_STATEMENTS,
  SQL_EFFECTS,
  SQL_RESET,
  SQL_SCHEMA,
  type SqlCase,
  WRITES,
} from "#test/support/sql-statements.ts";
import {
  type SqlTransport,
  onFreshConnections,
  pgTransport,
  queryTransport,
  sqlTransport,
  webSocketTransport,
} from "#test/support/sql-transports.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const USERS = { trusted: "app", untrusted: "app_user" } as const;
const ROLES = { trusted: "service", untrusted: "authenticated" } as const;

/** PostgreSQL itself in both query modes, and what is compared with it. */
interface Transports {
  readonly simple: SqlTransport;
  readonly extended: SqlTransport;
  readonly doors: readonly SqlTransport[];
}

let cluster: Cluster;
let gateway: TestGateway;
/** Prepares and reads contents, directly. */
let owner: Client;
const shared = new Map<Trust, Transports>();

beforeAll(async () => {
  cluster = await testCluster();
  owner = new Client({ connectionString: cluster.primary.url("app") });
  await owner.connect();
  await owner.query(SQL_SCHEMA);
  await owner.query(SQL_RESET);
  await caughtUp(cluster);
  gateway = await testGateway(cluster);
  for (const trust of ["trusted", "untrusted"] as const) {
    shared.set(trust, await openTransports(trust));
  }
});

afterAll(async () => {
  for (const transports of shared.values()) await closeTransports(transports);
  await owner?.end();
  await gateway?.stop();
  await cluster?.stop();
});

type Opener = () => Promise<SqlTransport>;

/** The ones to PostgreSQL itself first. */
async function openersFor(trust: Trust): Promise<Opener[]> {
  const direct = cluster.primary.url(USERS[trust]);
  const url = gateway.url(USERS[trust]);
  const jwt = await gateway.token({ role: ROLES[trust] });
  return [
    () => pgTransport("PostgreSQL simple", direct, "simple"),
    () => pgTransport("PostgreSQL extended", direct, "extended"),
    () => pgTransport("wire simple", url, "simple"),
    () => pgTransport("wire extended", url, "extended"),
    () => webSocketTransport("WebSocket pipelined", gateway, url, true),
    () => webSocketTransport("WebSocket", gateway, url, false),
    () => Promise.resolve(sqlTransport(gateway, url)),
    () => Promise.resolve(queryTransport(gateway, jwt)),
  ];
}

async function openTransports(trust: Trust): Promise<Transports> {
  const openers = await openersFor(trust);
  return toTransports(await Promise.all(openers.map((open) => open())));
}

/** Like the shared ones, with a connection for each statement. */
async function freshTransports(trust: Trust): Promise<Transports> {
  const { simple, extended, doors } = transportsOf(trust);
  const openers = await openersFor(trust);
  const shapes = [simple, extended, ...doors];
  return toTransports(
    openers.flatMap((open, index) => {
      const shape = shapes[index];
      return shape === undefined ? [] : [onFreshConnections(open, shape)];
    }),
  );
}

function toTransports([simple, extended, ...doors]: readonly SqlTransport[]): Transports {
  if (simple === undefined || extended === undefined) throw new Error("no reference");
  return { simple, extended, doors };
}

async function closeTransports({ simple, extended, doors }: Transports): Promise<void> {
  await Promise.all([simple, extended, ...doors].map((transport) => transport.close()));
}

function transportsOf(trust: Trust): Transports {
  const transports = shared.get(trust);
  if (transports === undefined) throw new Error("the transports are not open");
  return transports;
}

interface Observation {
  readonly outcome: SqlOutcome;
  /** What the statement has left behind; undefined where it was not looked at. */
  readonly effects: unknown;
}

type Observe = (transport: SqlTransport) => Promise<Observation>;

/** Compares what every door shows with what PostgreSQL has shown in the same mode. */
async function expectSameEverywhere(
  statement: SqlCase,
  { simple, extended, doors }: Transports,
  observe: Observe,
): Promise<void> {
  const references = { simple: await observe(simple), extended: await observe(extended) };
  const expected: Record<string, Observation> = {};
  const actual: Record<string, Observation> = {};
  for (const door of doors) {
    const reference = references[door.modeOf(statement)];
    expected[door.name] = { ...reference, outcome: seenBy(door.view, reference.outcome) };
    actual[door.name] = await observe(door);
  }

  expect(actual).toEqual(expected);
  if (statement.differsByMode === true) return;
  expect(ofBothModes(references.simple.outcome)).toEqual(ofBothModes(references.extended.outcome));
  expect(references.simple.effects).toEqual(references.extended.effects);
}

function observeRead(statement: SqlCase): Observe {
  return async (transport) => ({ outcome: await transport.run(statement), effects: undefined });
}

/** On fresh contents. */
function observeWrite(statement: SqlCase): Observe {
  return async (transport) => {
    await owner.query(SQL_RESET);
    const outcome = await transport.run(statement);
    const { rows } = await owner.query(SQL_EFFECTS);
    return { outcome, effects: rows };
  };
}

describe.each(["trusted", "untrusted"] as const)("with %s SQL every door answers", (trust) => {
  test.each([...READS])("$title as PostgreSQL does", async (statement) => {
    await expectSameEverywhere(statement, transportsOf(trust), observeRead(statement));
  });
});

describe("with trusted SQL every door answers and does", () => {
  test.each([...WRITES])("$title as PostgreSQL does", async (statement) => {
    await expectSameEverywhere(statement, transportsOf("trusted"), observeWrite(statement));
  });
});

describe("on a session of its own every door answers and does", () => {
  test.each([...SESSION_STATEMENTS])("$title as PostgreSQL does", async (statement) => {
    const transports = await freshTransports("trusted");

    await expectSameEverywhere(statement, transports, observeWrite(statement));
  });
});
