// Leases end exactly once; shutdown; figures.
import { describe, expect, test } from "bun:test";
import { FakeConnection, FakePool, FakeRequest, fakeServer, settle } from "./fake-pool.ts";

describe("leases", () => {
  test("the server counts its leases from grant to release or discard", async () => {
    const fake = new FakePool();
    const server = fakeServer("a");
    const one = await fake.lease(new FakeRequest({ servers: [server] }));
    const two = await fake.lease(new FakeRequest({ servers: [server] }));
    const counts = [server.leased];
    fake.pools.release(one);
    counts.push(server.leased);
    fake.pools.discard(two);
    counts.push(server.leased);

    expect(counts).toEqual([2, 1, 0]);
  });

  test("a lease is given back once, by either way", async () => {
    const fake = new FakePool();
    const server = fakeServer("a");
    const connection = await fake.lease(new FakeRequest({ servers: [server] }));
    fake.pools.release(connection);

    expect(() => fake.pools.release(connection)).toThrow("not on lease");
    expect(() => fake.pools.discard(connection)).toThrow("not on lease");
    expect([server.leased, connection.closeCount]).toEqual([0, 0]);
  });

  test("a connection that the pools have not opened is not taken", async () => {
    const fake = new FakePool();
    const own = await fake.lease(new FakeRequest({ servers: [fakeServer("a")] }));
    const { profile, server } = own;
    const request = { profile, server, principal: "", startupOptions: "", deadline: 0 };

    expect(() => fake.pools.release(new FakeConnection(9, request, 0))).toThrow("not on lease");
    expect(() => new FakePool().pools.release(own)).toThrow("no pool has opened");
  });
});

describe("close", () => {
  test("it refuses what waits and what comes, closes FREE ones, and waits for those on lease", async () => {
    const fake = new FakePool();
    const server = fakeServer("a");
    const used = await fake.lease(new FakeRequest({ servers: [server] }));
    const free = await fake.lease(new FakeRequest({ servers: [server], startupOptions: "x" }));
    fake.pools.release(free);
    const waiter = new FakeRequest({ servers: [server], startupOptions: "y" });
    fake.pools.acquire(waiter);
    let isClosed = false;

    const closed = fake.pools.close(1_000).then(() => {
      isClosed = true;
    });
    const opened = await fake.succeed();
    const before = [free.closeCount, used.closeCount, opened.closeCount, isClosed];
    fake.pools.release(used);
    await closed;

    expect(before).toEqual([1, 0, 1, false]);
    expect(used.closeCount).toBe(1);
    const error = expect.objectContaining({ code: "ERR_SHUTTING_DOWN", sqlState: "57P01" });
    expect(waiter.outcomes).toEqual([error]);
    expect(() => fake.pools.acquire(new FakeRequest({ servers: [server] }))).toThrow(error);
    expect(fake.clock.timerCount).toBe(0);
  });

  test("at the deadline and not before, connections on lease are closed; the leases are still given back", async () => {
    const fake = new FakePool();
    const server = fakeServer("a");
    const used = await fake.lease(new FakeRequest({ servers: [server] }));
    const closed = fake.pools.close(1_000);

    fake.clock.advance(999.9);
    const before = used.closeCount;
    fake.clock.advance(0.1);
    await closed;
    const leasedBefore = server.leased;
    fake.pools.release(used);

    expect([before, used.closeCount, leasedBefore, server.leased]).toEqual([0, 1, 1, 0]);
  });

  test("a connection whose open ends after the deadline is closed", async () => {
    const fake = new FakePool();
    fake.pools.acquire(new FakeRequest({ servers: [fakeServer("a")] }));
    const closed = fake.pools.close(10);
    fake.clock.advance(10);
    await closed;

    const late = await fake.succeed();

    expect(late.closeCount).toBe(1);
  });

  test("pools that hold nothing close at once, and closing twice is closing once", async () => {
    const fake = new FakePool();

    const first = fake.pools.close(1_000);
    await first;

    expect(fake.pools.close(5)).toBe(first);
    expect(fake.clock.timerCount).toBe(0);
  });
});

describe("figures", () => {
  test("a snapshot has one row per database, user and server, and no waiter twice", async () => {
    const fake = new FakePool();
    const [a, b] = [fakeServer("a"), fakeServer("b")];
    const both = { servers: [a, b] };
    for (let count = 0; count < 3; count += 1) {
      fake.pools.acquire(new FakeRequest(both));
    }
    await fake.succeed();
    fake.pools.release(await fake.succeed());
    fake.pools.acquire(new FakeRequest({ ...both, startupOptions: "x" }));
    fake.clock.advance(250);

    expect(fake.pools.snapshot()).toEqual([
      {
        database: "shop",
        user: "app",
        server: "a",
        used: 2,
        free: 0,
        opening: 0,
        waiting: 1,
        maxWaitMs: 250,
      },
      {
        database: "shop",
        user: "app",
        server: "b",
        used: 0,
        free: 0,
        opening: 2,
        waiting: 0,
        maxWaitMs: 0,
      },
    ]);
  });

  test("counters tell how requests were served", async () => {
    const fake = new FakePool();
    const server = fakeServer("a");
    const make = (principal: string, deadline?: number): FakeRequest =>
      new FakeRequest({
        servers: [server],
        principal,
        ...(deadline === undefined ? {} : { deadline }),
      });
    const alice = await fake.lease(make("alice"));
    fake.pools.release(alice);
    fake.pools.acquire(make("bob"));
    alice.finishRekey();
    await settle();
    await fake.lease(make("bob"));
    fake.pools.acquire(make("bob", 100));
    fake.clock.advance(100);
    fake.pools.release(alice);
    fake.pools.acquire(new FakeRequest({ servers: [server], startupOptions: "x" }));
    await fake.fail(new Error("refused"));

    expect(fake.pools.statistics()).toEqual([
      {
        database: "shop",
        user: "app",
        counters: {
          assignments: 3,
          opens: 3,
          openFailures: 1,
          waits: 5,
          waitMs: 100,
          timeouts: 1,
          evictions: 1,
          rekeys: 1,
        },
      },
    ]);
  });
});
