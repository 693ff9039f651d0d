// One server connection by itself: statements of our own, its end, and when it is fit for the next client.
import { describe, expect, test } from "bun:test";
import { BackendConnection, type BackendHolder } from "#pool/backend/backend-connection.ts";
import { PoolError } from "#pool/errors.ts";
import { Expect } from "#pool/exchange/reply-plan.ts";
import { FakeBackend, settled } from "#test/support/fake-backend.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { server } from "#test/support/wire-frames.ts";
import { FakeCluster, PROFILE } from "../session/relay-bench.ts";

function connected(sendCancel: () => Promise<void> = () => Promise.resolve()): {
  clock: FakeClock;
  backend: FakeBackend;
  connection: BackendConnection;
} {
  const clock = new FakeClock();
  const backend = new FakeBackend();
  const connection = new BackendConnection({
    socket: backend.socket,
    clock,
    server: new FakeCluster().primary,
    profile: PROFILE,
    principal: "one",
    startupOptions: "",
    processId: 1,
    secretKey: new Uint8Array(4),
    parameters: new Map(),
    sendCancel,
  });
  return { clock, backend, connection };
}

function holder(events: string[]): BackendHolder {
  return {
    forward: () => events.push("forward"),
    settled: () => events.push("settled"),
    progressed: () => events.push("progressed"),
    lost: (error) => events.push(`lost ${error.sqlState} ${error.message}`),
    writable: () => events.push("writable"),
  };
}

describe("statements of our own", () => {
  test("one that is done leaves the connection as quiet as before", async () => {
    const { connection, backend } = connected();

    await connection.run("set work_mem = '1MB'", 5_000);

    expect(backend.received).toEqual(["Q set work_mem = '1MB'"]);
    expect(connection.isQuiet).toBe(true);
  });

  test("one that fails rejects with the server's SQLSTATE, and the connection stays open", async () => {
    const { connection } = connected();

    const error = await connection.run("select 1/0", 5_000).catch((reason: unknown) => reason);

    expect(error).toMatchObject({ sqlState: "22012", message: "division by zero" });
    expect([connection.isOpen, connection.isQuiet]).toEqual([true, true]);
  });

  test("one that is not answered by its deadline closes the connection", async () => {
    const { clock, connection, backend } = connected();
    backend.hold();
    const outcome = connection.run("select 1", 5_000).catch((reason: unknown) => reason);
    await settled();

    clock.advance(4_999);
    const before = connection.isOpen;
    clock.advance(1);

    expect(await outcome).toMatchObject({ sqlState: "57014" });
    expect([before, connection.isOpen]).toEqual([true, false]);
  });

  test("a connection that is lost meanwhile rejects, and leaves no timer", async () => {
    const { clock, connection, backend } = connected();
    backend.hold();
    const outcome = connection.run("select 1", 5_000).catch((reason: unknown) => reason);
    await settled();

    backend.break();

    expect(await outcome).toMatchObject({ sqlState: "08006" });
    expect(clock.timerCount).toBe(0);
  });

  test("on a closed connection nothing is waited for", async () => {
    const { clock, connection } = connected();
    connection.close();

    expect(
      await connection.run("select 1", 5_000).catch((reason: unknown) => reason),
    ).toMatchObject({
      sqlState: "08006",
    });
    expect(clock.timerCount).toBe(0);
  });
});

describe("change of principal", () => {
  test("DISCARD ALL, and then it serves the other one", async () => {
    const { connection, backend } = connected();
    connection.appliedParameters = "some";

    await connection.rekey("two", 5_000);

    expect(connection.principal).toBe("two");
    expect(connection.appliedParameters).toBe("");
    expect(backend.received).toEqual(["Q DISCARD ALL", expect.stringContaining("setseed(")]);
  });

  test("one that fails closes the connection, which keeps its old principal", async () => {
    const { clock, connection, backend } = connected();
    backend.hold();
    const outcome = connection.rekey("two", 5_000).catch((reason: unknown) => reason);
    await settled();

    clock.advance(5_000);

    expect(await outcome).toBeInstanceOf(PoolError);
    expect([connection.isOpen, connection.principal]).toEqual([false, "one"]);
  });
});

describe("its end", () => {
  test("is told once to the pool and to the holder, and the plan is given up", async () => {
    const { connection, backend } = connected();
    const events: string[] = [];
    connection.onClosed = () => events.push("closed");
    connection.attach(holder(events));
    connection.plan.expect(Expect.QUERY, 0, { failed: () => events.push("failed") });

    backend.end();
    await settled();
    connection.close();

    expect(events).toEqual([
      "closed",
      "lost 08006 server closed the connection unexpectedly",
      "failed",
    ]);
  });

  test("by us it says Terminate", async () => {
    const { connection, backend } = connected();

    connection.close();
    await settled();

    expect(backend.received).toEqual(["X"]);
    expect(backend.hasClosed).toBe(true);
  });

  test("a holder can't be attached to a closed connection, where it would never hear of anything", () => {
    const { connection } = connected();
    connection.close();

    expect(() => connection.attach(holder([]))).toThrow("closed backend connection");
  });

  test("what comes behind the server's last words is not looked at", async () => {
    const { connection, backend } = connected();
    const events: string[] = [];
    connection.attach(holder(events));
    connection.plan.expect(Expect.QUERY);

    backend.send(
      server.error("57P01", "going down", "FATAL"),
      server.notice("more"),
      server.ready("I"),
    );
    await settled();

    expect(events).toEqual(["lost 57P01 going down"]);
  });
});

describe("fit for the next client", () => {
  test("not while a part of a message has come that belongs to nobody", async () => {
    const { connection, backend } = connected();
    const notice = server.notice("hello");

    backend.send(notice.subarray(0, 10));
    await settled();
    const torn = connection.isQuiet;
    backend.send(notice.subarray(10));
    await settled();

    expect([torn, connection.isQuiet]).toEqual([false, true]);
  });

  test("not while a cancel request is on its way; the holder is told when it has arrived", async () => {
    const cancel = Promise.withResolvers<void>();
    const { connection } = connected(() => cancel.promise);
    const events: string[] = [];
    connection.attach(holder(events));

    const canceled = connection.cancel(5_000);
    const before = connection.isQuiet;
    cancel.resolve();
    await canceled;

    expect([before, connection.isQuiet, events]).toEqual([false, true, ["settled"]]);
  });

  test("never again when it is not known whether the request arrived", async () => {
    const { connection } = connected(() =>
      Promise.reject(new PoolError("ERR_CONNECT_TIMEOUT", "no answer", { sqlState: "08001" })),
    );

    await connection.cancel(5_000).catch(() => {});

    expect(connection.isTainted).toBe(true);
  });
});

test("reported parameters are kept up to date", async () => {
  const { connection, backend } = connected();

  backend.send(server.parameterStatus("TimeZone", "UTC"));
  await settled();

  expect(Object.fromEntries(connection.parameters)).toEqual({ TimeZone: "UTC" });
});
