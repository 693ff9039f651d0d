// Limits per database, user and server; reload; sweeps.
import { describe, expect, test } from "bun:test";
import { JANITOR_INTERVAL_MS } from "#pool/connections/limits.ts";
import { FakePool, FakeRequest, fakeProfile, fakeServer, RETRY_MS } from "./fake-pool.ts";

const A = fakeServer("a");
const B = fakeServer("b");

describe("default_pool_size", () => {
  test("the last connection allowed is opened, and the next request only waits", () => {
    const fake = new FakePool();
    for (let count = 0; count < 3; count += 1) {
      fake.pools.acquire(new FakeRequest({ servers: [A] }));
    }

    expect(fake.opens.length).toBe(2);
    expect(fake.pools.snapshot()).toMatchObject([{ opening: 2, waiting: 3 }]);
  });

  test("it counts over all keys of a user on a server, and for each server and user apart", () => {
    const fake = new FakePool();
    const acquire = (parts: ConstructorParameters<typeof FakeRequest>[0]): number => {
      fake.pools.acquire(new FakeRequest(parts));
      return fake.opens.length;
    };

    const opens = [
      acquire({ servers: [A], principal: "alice" }),
      acquire({ servers: [A], principal: "bob" }),
      acquire({ servers: [A], profile: fakeProfile({ name: "web" }) }),
      acquire({ servers: [B] }),
      acquire({ servers: [A], profile: fakeProfile({ user: "other" }) }),
      acquire({ servers: [A], profile: fakeProfile({ database: "other" }) }),
    ];

    expect(opens).toEqual([1, 2, 2, 3, 4, 5]);
  });

  test("at the limit the least recently used FREE connection of another key gives up its slot", async () => {
    const fake = new FakePool();
    const older = await fake.lease(new FakeRequest({ servers: [A], startupOptions: "x" }));
    const newer = await fake.lease(new FakeRequest({ servers: [A], startupOptions: "y" }));
    fake.pools.release(newer);
    fake.pools.release(older);
    const request = new FakeRequest({ servers: [A], startupOptions: "z" });

    fake.pools.acquire(request);
    const opened = await fake.succeed();

    expect([older.closeCount, newer.closeCount]).toEqual([0, 1]);
    expect(request.outcomes).toEqual([opened]);
  });

  test("below the limit FREE connections of other keys stay", async () => {
    const fake = new FakePool();
    const other = await fake.lease(new FakeRequest({ servers: [A], startupOptions: "x" }));
    fake.pools.release(other);

    await fake.lease(new FakeRequest({ servers: [A], startupOptions: "y" }));

    expect(other.closeCount).toBe(0);
  });

  test("a discarded connection's slot is opened anew for who waits", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ defaultPoolSize: 1 });
    const held = await fake.lease(new FakeRequest({ servers: [A], profile }));
    const waiter = new FakeRequest({ servers: [A], profile });
    fake.pools.acquire(waiter);

    fake.pools.discard(held);
    const opened = await fake.succeed();

    expect(held.closeCount).toBe(1);
    expect(waiter.outcomes).toEqual([opened]);
  });
});

describe("wait_queue_max", () => {
  test("the last place is given, the next request is refused with 53300", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ defaultPoolSize: 1, waitQueueMax: 2 });
    const make = (): FakeRequest => new FakeRequest({ servers: [A], profile });
    const held = await fake.lease(make());
    const [first, second] = [make(), make()];
    fake.pools.acquire(first);
    fake.pools.acquire(second);

    expect(() => fake.pools.acquire(make())).toThrow(
      expect.objectContaining({ code: "ERR_WAIT_QUEUE_FULL", sqlState: "53300" }),
    );
    fake.pools.release(held);
    expect(fake.pools.acquire(make())).toBeUndefined();
  });

  test("a full queue still lets a request have what is FREE", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ defaultPoolSize: 1, waitQueueMax: 1 });
    await fake.lease(new FakeRequest({ servers: [A], profile }));
    const onB = await fake.lease(new FakeRequest({ servers: [B], profile }));
    fake.pools.release(onB);
    fake.pools.acquire(new FakeRequest({ servers: [A], profile }));

    expect(fake.pools.acquire(new FakeRequest({ servers: [B], profile }))).toBe(onB);
  });
});

describe("reload", () => {
  test("FREE connections of older generations close at once, those on lease at release", async () => {
    const fake = new FakePool();
    const free = await fake.lease(new FakeRequest({ servers: [A] }));
    const used = await fake.lease(new FakeRequest({ servers: [A] }));
    fake.pools.release(free);

    fake.pools.retire("api", 2);
    const atOnce = [free.closeCount, used.closeCount];
    fake.pools.release(used);

    expect(atOnce).toEqual([1, 0]);
    expect(used.closeCount).toBe(1);
  });

  test("connections of the new generation and of other profiles stay", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ generation: 2 });
    const current = await fake.lease(new FakeRequest({ servers: [A], profile }));
    const other = await fake.lease(
      new FakeRequest({ servers: [A], profile: fakeProfile({ name: "web" }) }),
    );
    fake.pools.release(current);

    fake.pools.retire("api", 2);
    fake.pools.release(other);

    expect([current.closeCount, other.closeCount]).toEqual([0, 0]);
  });

  test("an open of an older generation that ends after the reload serves its waiter and closes at release", async () => {
    const fake = new FakePool();
    const request = new FakeRequest({ servers: [A] });
    fake.pools.acquire(request);
    fake.pools.retire("api", 2);

    const opened = await fake.succeed();
    const before = [...request.outcomes, opened.closeCount];
    fake.pools.release(opened);

    expect(before).toEqual([opened, 0]);
    expect(opened.closeCount).toBe(1);
  });
});

describe("sweeps", () => {
  const idle = fakeProfile({ serverIdleTimeoutMs: 2 * JANITOR_INTERVAL_MS });
  const mortal = fakeProfile({ serverLifetimeMs: 2 * JANITOR_INTERVAL_MS });

  test("a FREE connection is closed by the first sweep at its idle timeout", async () => {
    const fake = new FakePool();
    const connection = await fake.lease(new FakeRequest({ servers: [A], profile: idle }));
    fake.pools.release(connection);

    fake.clock.advance(2 * JANITOR_INTERVAL_MS - 0.1);
    const before = connection.closeCount;
    fake.clock.advance(0.1);

    expect([before, connection.closeCount]).toEqual([0, 1]);
  });

  test("use restarts the idle time, and the coldest ends first", async () => {
    const fake = new FakePool();
    const make = (): FakeRequest => new FakeRequest({ servers: [A], profile: idle });
    const cold = await fake.lease(make());
    const warm = await fake.lease(make());
    fake.pools.release(cold);
    fake.pools.release(warm);
    fake.clock.advance(JANITOR_INTERVAL_MS);
    fake.pools.acquire(make());
    fake.pools.release(warm);

    fake.clock.advance(JANITOR_INTERVAL_MS);

    expect([cold.closeCount, warm.closeCount]).toEqual([1, 0]);
  });

  test("a FREE connection is closed at its lifetime, one on lease only when it is released", async () => {
    const fake = new FakePool();
    const make = (): FakeRequest => new FakeRequest({ servers: [A], profile: mortal });
    const free = await fake.lease(make());
    const used = await fake.lease(make());
    fake.pools.release(free);

    fake.clock.advance(10 * JANITOR_INTERVAL_MS);
    const atLifetime = [free.closeCount, used.closeCount];
    fake.pools.release(used);

    expect(atLifetime).toEqual([1, 0]);
    expect(used.closeCount).toBe(1);
  });

  test("a FREE connection that one sweep gives to a waiter's slot is closed once", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ defaultPoolSize: 4, serverIdleTimeoutMs: RETRY_MS });
    const parts = { servers: [A], profile };
    await fake.lease(new FakeRequest(parts));
    const others = [
      await fake.lease(new FakeRequest(parts)),
      await fake.lease(new FakeRequest(parts)),
      await fake.lease(new FakeRequest(parts)),
    ];
    for (const connection of others) {
      fake.pools.release(connection);
    }
    // Its smaller limit is exceeded even when the first idle connection has ended, so it takes the second one's slot.
    const small = fakeProfile({ name: "web", defaultPoolSize: 2 });
    fake.pools.acquire(new FakeRequest({ servers: [A], profile: small }));
    await fake.fail(new Error("refused"));

    fake.clock.advance(RETRY_MS);

    expect(others.map(({ closeCount }) => closeCount)).toEqual([1, 1, 1]);
    expect(fake.pools.snapshot()).toMatchObject([{ used: 1, free: 0, opening: 1, waiting: 1 }]);
  });

  test("no timer runs before the first connection and after the last", async () => {
    const fake = new FakePool();
    const before = fake.clock.timerCount;
    const connection = await fake.lease(new FakeRequest({ servers: [A], profile: idle }));
    const during = fake.clock.timerCount;
    fake.pools.release(connection);
    fake.clock.advance(3 * JANITOR_INTERVAL_MS);

    // The janitor's, and that of the queue, which outlives its last waiter until the next sweep.
    expect([before, during, fake.clock.timerCount]).toEqual([0, 2, 0]);
    expect(fake.pools.snapshot()).toEqual([]);
  });
});
