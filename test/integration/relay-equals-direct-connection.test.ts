// Trace equality on real PostgreSQL: scripted pipelines through a relay, over two connections that another client uses too, against the same bytes on a connection of their own.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Secret } from "#auth/secret.ts";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { BackendConnection } from "#pool/backend/backend-connection.ts";
import { sendCancelRequest } from "#pool/backend/cancel-request.ts";
import { loginToServer } from "#pool/backend/login.ts";
import { ConnectionPools } from "#pool/connections/connection-pools.ts";
import type { Server } from "#pool/routing/server.ts";
import { probeAfterSync } from "#pool/session/probe.ts";
import { type RelayEnvironment, newRelayCounters } from "#pool/session/relay-environment.ts";
import { NO_PARAMETERS } from "#pool/session/startup-parameters.ts";
import { StatementRegistry } from "#pool/session/statement-registry.ts";
import { StatementClassifier, loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import { BunTransport } from "#pool/transport/bun-transport.ts";
import { OWN_ROUTINE, readErrorFields } from "#pool/wire/backend-messages.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { client, splitFrames } from "#test/support/wire-frames.ts";
import { BenchClient, FakeCluster, PROFILE } from "../unit/pool/session/relay-bench.ts";
import { SCRIPTS, type Step } from "./relay-scripts.ts";

const TIMEOUT_MS = 10_000;
const clock = new SystemClock();
const transport = new BunTransport(clock);
let cluster: Cluster;
let server: Server;

beforeAll(async () => {
  await loadStatementParser();
  cluster = await testCluster({ replicas: 0 });
  server = {
    name: "primary",
    address: { host: cluster.primary.host, port: cluster.primary.port },
    weight: 1,
    tls: { mode: "disable", ca: undefined },
    role: "primary",
    epoch: 0,
    leased: 0,
  };
  await cluster.primary.sql(
    "create table relay_rows (id int primary key, note text); grant all on relay_rows to app",
  );
});

afterAll(() => cluster.stop());

function login(): ReturnType<typeof loginToServer> {
  return loginToServer({
    transport,
    clock,
    server,
    dbname: cluster.database,
    user: "app",
    password: new Secret(cluster.passwords.app),
    parameters: { client_encoding: "UTF8" },
    deadline: clock.now() + TIMEOUT_MS,
  });
}

/** Where a script's bytes go, and where its answers come from. */
interface Target {
  send(bytes: Uint8Array): void;
  readonly bytes: Uint8Array;
  close(): Promise<void> | void;
}

async function directTarget(): Promise<Target> {
  const { socket } = await login();
  const received: Uint8Array[] = [];
  socket.setHandlers({ data: (bytes) => received.push(bytes), drain: () => {}, close: () => {} });
  socket.resume();
  return {
    send: (bytes) => socket.write(bytes),
    get bytes() {
      return concatBytes(received);
    },
    close: () => socket.end(),
  };
}

function pools(): ConnectionPools<BackendConnection> {
  return new ConnectionPools<BackendConnection>({
    clock,
    serverLoginRetryMs: 1_000,
    open: async (request) => {
      const { socket, parameters, processId, secretKey } = await login();
      const connection = new BackendConnection({
        ...request,
        socket,
        clock,
        processId,
        secretKey,
        parameters,
        sendCancel: (deadline) =>
          sendCancelRequest({ transport, clock, server, processId, secretKey, deadline }),
      });
      socket.resume();
      return connection;
    },
  });
}

class RelayTarget implements Target {
  readonly #environment: RelayEnvironment;
  readonly #app: BenchClient;
  readonly #other: BenchClient;
  readonly #bugs: unknown[] = [];
  #otherTurn = 0;

  constructor(isTrusted: boolean) {
    this.#environment = {
      clock,
      pools: pools(),
      classifier: new StatementClassifier(),
      registry: new StatementRegistry(),
      placement: probeAfterSync,
      output: { usedBytes: 0, bytesMax: 1_000_000_000 },
      clientReadTimeoutMs: 30_000,
      counters: newRelayCounters(),
      reportBug: (error) => this.#bugs.push(error),
    };
    const identity = {
      profile: { ...PROFILE, isTrusted, defaultPoolSize: 2, maxPreparedStatements: 3 },
      cluster: new FakeCluster(),
      principal: "",
      parameters: NO_PARAMETERS,
    };
    this.#app = new BenchClient(this.#environment, identity, []);
    this.#other = new BenchClient(this.#environment, identity, []);
  }

  get bytes(): Uint8Array {
    return this.#app.bytes;
  }

  /** Ahead of each step another client changes the unnamed statement and the prepared ones of whichever connection it gets. */
  send(bytes: Uint8Array): void {
    const turn = this.#otherTurn++;
    this.#other.push(
      client.unnamed(`select 'noise ${turn}'`),
      client.closeStatement("n"),
      client.parse("n", `select ${turn}`),
      client.run("n"),
    );
    this.#app.push(bytes);
  }

  async close(): Promise<void> {
    this.#app.relay.leave(true);
    this.#other.relay.leave(true);
    await this.#environment.pools.close(clock.now() + TIMEOUT_MS);
    expect(this.#bugs).toEqual([]);
  }
}

/** Frames so far of the types that a step waits for. */
function countOf(target: Target, type: string): number {
  return splitFrames(target.bytes).filter((frame) => frame.type === type).length;
}

async function run(target: Target, steps: readonly Step[]): Promise<Uint8Array> {
  const deadline = clock.now() + TIMEOUT_MS;
  const seen = new Map<string, number>();
  for (const { bytes, until, count } of steps) {
    const wanted = (seen.get(until) ?? 0) + count;
    seen.set(until, wanted);
    target.send(bytes);
    while (countOf(target, until) < wanted) {
      if (clock.now() > deadline) throw new Error(`no ${until} in time`);
      await Bun.sleep(1);
    }
  }
  return target.bytes;
}

/** Each frame as hex; of an error that the gateway says itself, what a client acts on. */
function traces(bytes: Uint8Array, ours: Uint8Array): string[] {
  const own = splitFrames(ours).map(({ bytes: frame }) => isOwn(frame));
  return splitFrames(bytes).map(({ type, bytes: frame }, index) => {
    if (own[index] !== true || type !== "E") return `${type} ${Buffer.from(frame).toString("hex")}`;
    const fields = readErrorFields(frame);
    const sqlState = fields.get("C");
    // A malformed message has more wordings than one.
    const text = sqlState === "08P01" ? "" : fields.get("M");
    return `${type} ${fields.get("S")} ${fields.get("V")} ${sqlState} ${text}`;
  });
}

function isOwn(frame: Uint8Array): boolean {
  return frame[0] === "E".charCodeAt(0) && readErrorFields(frame).get("R") === OWN_ROUTINE;
}

describe.each([true, false])("trusted: %p", (isTrusted) => {
  test.each(SCRIPTS.map(({ name, steps }) => [name, steps] as const))("%s", async (_, steps) => {
    const direct = await directTarget();
    const relay = new RelayTarget(isTrusted);

    const expected = await run(direct, steps);
    await direct.close();
    const answers = await run(relay, steps);
    await relay.close();

    expect(traces(answers, answers)).toEqual(traces(expected, answers));
  });
});

test("nothing of any script is left on the server", async () => {
  const rows = await cluster.primary.sql(
    `select count(*)::int as rows,
            (select count(*)::int from pg_prepared_xacts) as prepared,
            (select count(*)::int from pg_stat_activity where usename = 'app' and state <> 'idle') as busy
       from relay_rows`,
  );

  expect(rows).toEqual([{ rows: 0, prepared: 0, busy: 0 }]);
});
