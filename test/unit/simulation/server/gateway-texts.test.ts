// The gateway's own code before a simulated server: a text that it sends by itself and the server does not know would be noticed by nobody.
import { describe, expect, test } from "bun:test";
import { BackendConnection } from "#pool/backend/backend-connection.ts";
import { sendCancelRequest } from "#pool/backend/cancel-request.ts";
import { type ControlConnection, openControlConnection } from "#pool/backend/control-connection.ts";
import { loginToServer } from "#pool/backend/login.ts";
import { parseLsn } from "#pool/consistency/lsn.ts";
import {
  IDENTITY_QUERY,
  SAMPLE_QUERY,
  parseServerReading,
} from "#pool/consistency/server-sample.ts";
import type { Server } from "#pool/routing/server.ts";
import { PROBE_BIND_EXECUTE_FRAMES, PROBE_PARSE_FRAME } from "#pool/session/probe.ts";
import { parameterSet, transition } from "#pool/session/startup-parameters.ts";
import { client } from "#test/support/wire-frames.ts";
import { PROFILES, UNTRUSTED } from "../../../simulation/sim-profiles.ts";
import { sql } from "../../../simulation/server/statements.ts";
import {
  BLOCK_BYTES,
  SEGMENT_BYTES,
  START_LSN,
} from "../../../simulation/server/write-ahead-log.ts";
import { SYSTEM_IDENTIFIER } from "../../../simulation/server/identity.ts";
import { ServerBench } from "./server-bench.ts";

const LIMIT_MS = 5_000;

function serverOf(bench: ServerBench, index: number): Server {
  const { name } = bench.server(index);
  return {
    name,
    address: { host: name, port: 5432 },
    weight: 1,
    tls: { mode: "disable", ca: undefined },
    role: "unknown",
    epoch: 0,
    leased: 0,
  };
}

function optionsFor(
  bench: ServerBench,
  index: number,
): Parameters<typeof openControlConnection>[0] {
  return {
    transport: bench.network,
    clock: bench.clock,
    server: serverOf(bench, index),
    dbname: "sim",
    user: "monitor",
    password: undefined,
    deadline: bench.clock.now() + LIMIT_MS,
  };
}

function control(bench: ServerBench, index: number): ControlConnection {
  return bench.settle(openControlConnection(optionsFor(bench, index)));
}

describe("the monitor's questions", () => {
  test("tell a primary's identity and insert position", () => {
    const bench = new ServerBench();
    bench.write(bench.login(), "1.1", 3);
    const rows = bench.settle(control(bench, 0).query(IDENTITY_QUERY, LIMIT_MS));

    expect(parseServerReading(rows, true)).toEqual({
      isInRecovery: false,
      lsn: BigInt(bench.server(0).lsn),
      isReplayPaused: false,
      startedAt: "s0",
      identity: {
        systemIdentifier: SYSTEM_IDENTIFIER,
        timeline: 1,
        blockSize: BLOCK_BYTES,
        segmentSize: SEGMENT_BYTES,
        versionNumber: 180001,
      },
    });
  });

  test("tell a replica's replay position and whether it is paused", () => {
    const bench = new ServerBench();
    bench.server(1).isReplayPaused = true;
    const rows = bench.settle(control(bench, 1).query(SAMPLE_QUERY, LIMIT_MS));

    expect(parseServerReading(rows, false)).toEqual({
      isInRecovery: true,
      lsn: BigInt(START_LSN),
      isReplayPaused: true,
      startedAt: "s0",
      identity: undefined,
    });
  });

  test("tell the timeline that a promoted server is on, by a connection from before", () => {
    const bench = new ServerBench();
    const connection = control(bench, 1);
    bench.cluster.crash(bench.server(0));
    bench.cluster.promote(bench.server(1));
    const rows = bench.settle(connection.query(IDENTITY_QUERY, LIMIT_MS));
    const { isInRecovery, identity } = parseServerReading(rows, true);

    expect([isInRecovery, identity?.timeline]).toEqual([false, 2]);
  });
});

describe("the probe", () => {
  test("tells the insert position of the commit before it", () => {
    const bench = new ServerBench();
    const session = bench.login();
    bench.write(session, "1.1", 3);

    const replies = session.ask(PROBE_PARSE_FRAME, PROBE_BIND_EXECUTE_FRAMES, client.sync());

    const row = replies.find((line) => line.startsWith("D ")) ?? "";
    expect(replies.map((line) => line.slice(0, 1)).join("")).toBe("12DCZ");
    expect(parseLsn(row.slice(2))).toBe(BigInt(bench.server(0).lsn));
  });

  test("is refused by a server in recovery", () => {
    const session = new ServerBench().login(1);

    const replies = session.ask(PROBE_PARSE_FRAME, PROBE_BIND_EXECUTE_FRAMES, client.sync());

    expect(replies.at(-2)).toStartWith("E 55000");
  });
});

describe("what the gateway sends to change a session", () => {
  test("puts startup parameters in force and takes them back", () => {
    const session = new ServerBench().login();
    const named = parameterSet([["application_name", "batch"]]);
    const none = parameterSet([]);
    if (!named.ok || !none.ok) throw new Error("the parameters are refused");

    const names = [
      transition([], named.parameters),
      transition(["application_name"], none.parameters),
    ]
      .concat(transition(["work_mem"], named.parameters))
      .map((text) => {
        expect(session.ask(client.query(text)).filter((line) => line.startsWith("E"))).toEqual([]);
        return session.ask(client.query(sql.showName)).at(1);
      });

    expect(names).toEqual(["D batch", "D ", "D batch"]);
  });

  test.each([...new Set(PROFILES.map(({ serverResetQuery }) => serverResetQuery))])(
    "resets it by %s",
    (text) => {
      const session = new ServerBench().login();
      session.ask(client.query(sql.setName("left")));
      session.ask(client.query(text));

      expect(session.ask(client.query(sql.showName)).at(1)).toBe("D ");
    },
  );
});

test("a connection is given to another principal without what the last one left", () => {
  const bench = new ServerBench();
  const options = { ...optionsFor(bench, 0), parameters: {} };
  const { socket, processId, secretKey, parameters } = bench.settle(loginToServer(options));
  const { server } = options;
  const connection = new BackendConnection({
    socket,
    clock: bench.clock,
    server,
    profile: UNTRUSTED,
    principal: "a",
    startupOptions: "",
    processId,
    secretKey,
    parameters,
    sendCancel: () => Promise.reject(new Error("nothing is cancelled here")),
  });
  socket.resume();
  bench.settle(connection.run(sql.setName("left"), LIMIT_MS));
  bench.settle(connection.rekey("b", LIMIT_MS));
  bench.settle(connection.run(sql.read("1.1", 3), LIMIT_MS));

  expect([connection.principal, bench.observed.at(-1)?.applicationName]).toEqual(["b", ""]);
});

test("the gateway's cancel request ends a statement, by the key that its login got", () => {
  const bench = new ServerBench();
  const holder = bench.login();
  holder.ask(client.query("BEGIN"));
  holder.ask(client.query(sql.write("1.1", 3)));
  const options = { ...optionsFor(bench, 0), parameters: {} };
  const { socket, processId, secretKey } = bench.settle(loginToServer(options));
  const received: Uint8Array[] = [];
  socket.setHandlers({ data: (bytes) => received.push(bytes), drain: () => {}, close: () => {} });
  socket.resume();
  socket.write(client.query(sql.write("2.1", 3)));
  bench.pass(300);

  bench.settle(sendCancelRequest({ ...options, processId, secretKey }));
  bench.until("the answer", () => received.length > 0);

  expect(Buffer.concat(received).toString("latin1")).toContain("57014");
});
