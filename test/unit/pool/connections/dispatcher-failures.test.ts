// What waiters get or hear when an open, a change of principal or a connection fails.
import { describe, expect, test } from "bun:test";
import { JANITOR_INTERVAL_MS } from "#pool/connections/limits.ts";
import { PoolError } from "#pool/errors.ts";
import { FakePool, FakeRequest, fakeProfile, fakeServer, RETRY_MS, settle } from "./fake-pool.ts";

const A = fakeServer("a");
const B = fakeServer("b");
const REFUSED = new PoolError("ERR_SERVER_LOGIN_REFUSED", "no such role", { sqlState: "28000" });

describe("failed opens", () => {
  test("a waiter hears the error once nothing is in use or in the making", async () => {
    const fake = new FakePool();
    const first = new FakeRequest({ servers: [A] });
    const second = new FakeRequest({ servers: [A] });
    const third = new FakeRequest({ servers: [A] });
    for (const request of [first, second, third]) {
      fake.pools.acquire(request);
    }

    await fake.fail(REFUSED);
    const afterOne = [first, second, third].map(({ outcomes }) => outcomes.length);
    await fake.fail(REFUSED);

    expect(afterOne).toEqual([0, 0, 0]);
    expect([first.outcomes, second.outcomes, third.outcomes]).toEqual([
      [REFUSED],
      [REFUSED],
      [REFUSED],
    ]);
    expect(fake.opens.length).toBe(0);
  });

  test("a waiter goes on waiting while another connection is in use, and gets that", async () => {
    const fake = new FakePool();
    const held = await fake.lease(new FakeRequest({ servers: [A] }));
    const waiter = new FakeRequest({ servers: [A] });
    fake.pools.acquire(waiter);

    await fake.fail(REFUSED);
    const before = [...waiter.outcomes];
    fake.pools.release(held);

    expect([before, waiter.outcomes]).toEqual([[], [held]]);
  });

  test("the last connection in use is lost: who waits behind a failed server hears its error", async () => {
    const fake = new FakePool();
    const held = await fake.lease(new FakeRequest({ servers: [A] }));
    const waiter = new FakeRequest({ servers: [A] });
    fake.pools.acquire(waiter);
    await fake.fail(REFUSED);

    held.lose();

    expect(waiter.outcomes).toEqual([REFUSED]);
  });

  test("until the retry time a request is refused at once with the stored error, then it opens", async () => {
    const fake = new FakePool();
    fake.pools.acquire(new FakeRequest({ servers: [A] }));
    await fake.fail(REFUSED);

    fake.clock.advance(RETRY_MS - 0.1);
    expect(() => fake.pools.acquire(new FakeRequest({ servers: [A] }))).toThrow(REFUSED);
    expect(fake.opens.length).toBe(0);

    fake.clock.advance(0.1);
    expect(fake.pools.acquire(new FakeRequest({ servers: [A] }))).toBeUndefined();
    expect(fake.opens.length).toBe(1);
  });

  test("after the retry time one open is tried at a time, and its success starts the others", async () => {
    const fake = new FakePool();
    fake.pools.acquire(new FakeRequest({ servers: [A] }));
    await fake.fail(REFUSED);
    fake.clock.advance(RETRY_MS);

    const first = new FakeRequest({ servers: [A] });
    const second = new FakeRequest({ servers: [A] });
    fake.pools.acquire(first);
    fake.pools.acquire(second);
    const openCount = fake.opens.length;
    const opened = await fake.succeed();

    expect(openCount).toBe(1);
    expect(first.outcomes).toEqual([opened]);
    expect(fake.opens.length).toBe(1);
  });

  test("a failure is forgotten when nobody has come for as long again, and with it the timer", async () => {
    const fake = new FakePool();
    fake.pools.acquire(new FakeRequest({ servers: [A] }));
    await fake.fail(REFUSED);

    fake.clock.advance(2 * RETRY_MS + JANITOR_INTERVAL_MS);
    const timers = fake.clock.timerCount;
    fake.pools.acquire(new FakeRequest({ servers: [A] }));
    fake.pools.acquire(new FakeRequest({ servers: [A] }));

    expect([timers, fake.opens.length]).toEqual([0, 2]);
  });

  test("a waiter behind connections in use has the server tried again after the retry time", async () => {
    const fake = new FakePool();
    await fake.lease(new FakeRequest({ servers: [A] }));
    const waiter = new FakeRequest({ servers: [A] });
    fake.pools.acquire(waiter);
    await fake.fail(REFUSED);

    fake.clock.advance(RETRY_MS + JANITOR_INTERVAL_MS);
    const opened = await fake.succeed();

    expect(waiter.outcomes).toEqual([opened]);
  });

  test("a connection of another key keeps its slot while its server cannot be opened on", async () => {
    const fake = new FakePool();
    const held = await fake.lease(new FakeRequest({ servers: [A] }));
    const other = fakeProfile({ name: "web" });
    const waiter = new FakeRequest({ servers: [A], profile: other });
    fake.pools.acquire(waiter);
    await fake.fail(REFUSED);

    fake.pools.release(held);

    expect(waiter.outcomes).toEqual([REFUSED]);
    expect(fake.pools.acquire(new FakeRequest({ servers: [A] }))).toBe(held);
  });

  test("something thrown that is no error becomes one with an SQLSTATE", async () => {
    const fake = new FakePool();
    const request = new FakeRequest({ servers: [A] });
    fake.pools.acquire(request);

    fake.opens[0]?.fail("text");
    await settle();

    expect(request.outcomes).toMatchObject([{ code: "ERR_CONNECT_FAILED", sqlState: "08001" }]);
  });
});

describe("connections that close by themselves", () => {
  test("a FREE one leaves the pool", async () => {
    const fake = new FakePool();
    const lost = await fake.lease(new FakeRequest({ servers: [A] }));
    fake.pools.release(lost);

    lost.lose();

    expect(fake.pools.snapshot()).toMatchObject([{ used: 0, free: 0, opening: 0 }]);
    expect(() => fake.pools.release(lost)).toThrow("not on lease");
  });

  test("one on lease frees its slot at once, and is given back once", async () => {
    const fake = new FakePool();
    const server = fakeServer("own");
    const profile = fakeProfile({ defaultPoolSize: 1 });
    const lost = await fake.lease(new FakeRequest({ servers: [server], profile }));
    const waiter = new FakeRequest({ servers: [server], profile });
    fake.pools.acquire(waiter);

    lost.lose();
    const leasedBefore = server.leased;
    const opened = await fake.succeed();
    fake.pools.release(lost);

    expect(leasedBefore).toBe(1);
    expect(waiter.outcomes).toEqual([opened]);
    expect(server.leased).toBe(1);
    expect(() => fake.pools.discard(lost)).toThrow("not on lease");
  });

  test("one that is closing when it is released doesn't become FREE", async () => {
    const fake = new FakePool();
    const closing = await fake.lease(new FakeRequest({ servers: [A] }));
    closing.isOpen = false;

    fake.pools.release(closing);

    expect(fake.pools.snapshot()).toMatchObject([{ used: 0, free: 0 }]);
  });
});

describe("a server that cannot be opened on", () => {
  test("a failed change of principal there moves its waiter on to the next server", async () => {
    const fake = new FakePool();
    const alice = await fake.lease(new FakeRequest({ servers: [A], principal: "alice" }));
    fake.pools.acquire(new FakeRequest({ servers: [A], startupOptions: "x" }));
    await fake.fail(REFUSED);
    fake.pools.release(alice);
    const bob = new FakeRequest({ servers: [A, B], principal: "bob" });
    fake.pools.acquire(bob);

    alice.failRekey();
    await settle();
    const opened = await fake.succeed();

    expect(opened.server).toBe(B);
    expect(bob.outcomes).toEqual([opened]);
  });
});
