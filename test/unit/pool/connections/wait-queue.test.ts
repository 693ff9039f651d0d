// Order, deadlines and departures of those who wait.
import { describe, expect, test } from "bun:test";
import { FakePool, FakeRequest, fakeProfile, fakeServer } from "./fake-pool.ts";

const A = fakeServer("a");
const B = fakeServer("b");
const SINGLE = fakeProfile({ defaultPoolSize: 1 });

function waiterFor(parts: { principal?: string; deadline?: number } = {}): FakeRequest {
  return new FakeRequest({ servers: [A], profile: SINGLE, ...parts });
}

describe("order", () => {
  test("a release hands the connection to the first waiter, whose release hands it to the second", async () => {
    const fake = new FakePool();
    const held = await fake.lease(waiterFor());
    const [first, second] = [waiterFor(), waiterFor()];
    fake.pools.acquire(first);
    fake.pools.acquire(second);

    fake.pools.release(held);
    const afterOne = [first.outcomes.length, second.outcomes.length];
    fake.pools.release(held);

    expect(afterOne).toEqual([1, 0]);
    expect([first.outcomes, second.outcomes]).toEqual([[held], [held]]);
  });

  test("a waiter of another principal is not passed by: the connection is changed for it", async () => {
    const fake = new FakePool();
    const held = await fake.lease(waiterFor({ principal: "alice" }));
    const [bob, alice] = [waiterFor({ principal: "bob" }), waiterFor({ principal: "alice" })];
    fake.pools.acquire(bob);
    fake.pools.acquire(alice);

    fake.pools.release(held);

    expect(held.isRekeying).toBe(true);
    expect(alice.outcomes).toEqual([]);
  });

  test("a waiter of another key gets the slot: one connection closes and another opens", async () => {
    const fake = new FakePool();
    const held = await fake.lease(waiterFor());
    const profile = fakeProfile({ name: "web", defaultPoolSize: 1 });
    const other = new FakeRequest({ servers: [A], profile });
    fake.pools.acquire(other);

    fake.pools.release(held);
    const opened = await fake.succeed();

    expect(held.closeCount).toBe(1);
    expect(other.outcomes).toEqual([opened]);
  });

  test("a release passes by those whom its server may not serve", async () => {
    const fake = new FakePool();
    const onA = await fake.lease(waiterFor());
    const onB = await fake.lease(new FakeRequest({ servers: [B], profile: SINGLE }));
    const first = waiterFor();
    const second = new FakeRequest({ servers: [B], profile: SINGLE });
    fake.pools.acquire(first);
    fake.pools.acquire(second);

    fake.pools.release(onB);

    expect([first.outcomes, second.outcomes]).toEqual([[], [onB]]);
    fake.pools.release(onA);
    expect(first.outcomes).toEqual([onA]);
  });

  test("a thousand waiters that release inside their callbacks are served without nesting", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ defaultPoolSize: 1, waitQueueMax: 1_000 });
    const held = await fake.lease(new FakeRequest({ servers: [A], profile }));
    let depth = 0;
    let depthMax = 0;
    const requests = Array.from({ length: 1_000 }, () => {
      const request = new FakeRequest({ servers: [A], profile });
      request.onGranted = (connection) => {
        depth += 1;
        depthMax = Math.max(depthMax, depth);
        fake.pools.release(connection);
        depth -= 1;
      };
      fake.pools.acquire(request);
      return request;
    });

    fake.pools.release(held);

    expect(requests.filter(({ outcomes }) => outcomes[0] !== held)).toEqual([]);
    expect(depthMax).toBe(1);
  });
});

describe("deadlines", () => {
  test("a waiter is refused with 57014 at its deadline and not before", async () => {
    const fake = new FakePool();
    await fake.lease(waiterFor());
    const waiter = waiterFor({ deadline: 2_000 });
    fake.pools.acquire(waiter);

    fake.clock.advance(1_999.9);
    const before = [...waiter.outcomes];
    fake.clock.advance(0.1);

    expect(before).toEqual([]);
    expect(waiter.outcomes).toMatchObject([
      { code: "ERR_QUERY_WAIT_TIMEOUT", sqlState: "57014", message: "query_wait_timeout" },
    ]);
  });

  test("a waiter that times out is skipped by the next release", async () => {
    const fake = new FakePool();
    const held = await fake.lease(waiterFor());
    const [first, second] = [waiterFor({ deadline: 10 }), waiterFor()];
    fake.pools.acquire(first);
    fake.pools.acquire(second);
    fake.clock.advance(10);

    fake.pools.release(held);

    expect(first.outcomes.length).toBe(1);
    expect(second.outcomes).toEqual([held]);
  });

  test("a deadline that has passed already is answered by a timer, not inside acquire", () => {
    const fake = new FakePool();
    fake.clock.advance(100);
    const late = waiterFor({ deadline: 50 });

    fake.pools.acquire(late);
    const inside = [...late.outcomes];
    fake.clock.advance(0);

    expect(inside).toEqual([]);
    expect(late.outcomes).toMatchObject([{ sqlState: "57014" }]);
  });

  test("a waiter that was granted leaves no timer behind", async () => {
    const fake = new FakePool();
    const held = await fake.lease(waiterFor());
    const timersBefore = fake.clock.timerCount;
    fake.pools.acquire(waiterFor());

    fake.pools.release(held);

    expect(fake.clock.timerCount).toBe(timersBefore);
  });
});

describe("abandon", () => {
  test("a waiter that gives up leaves no gap in the queue and is not called back", async () => {
    const fake = new FakePool();
    const held = await fake.lease(waiterFor());
    const [first, second, third] = [waiterFor(), waiterFor(), waiterFor()];
    for (const request of [first, second, third]) {
      fake.pools.acquire(request);
    }

    fake.pools.abandon(second);
    fake.pools.release(held);
    fake.pools.release(held);

    expect([first.outcomes, second.outcomes, third.outcomes]).toEqual([[held], [], [held]]);
  });

  test("one that is granted but not told yet passes the connection on", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ defaultPoolSize: 2 });
    const parts = { servers: [A], profile };
    const [one, two] = [
      await fake.lease(new FakeRequest(parts)),
      await fake.lease(new FakeRequest(parts)),
    ];
    const [first, second, third] = [0, 1, 2].map(() => new FakeRequest(parts));
    if (first === undefined || second === undefined || third === undefined) {
      throw new Error("three requests were made");
    }
    for (const request of [first, second, third]) {
      fake.pools.acquire(request);
    }
    // Inside its callback the first releases, which grants `second` its connection, and then withdraws `second`.
    first.onGranted = (connection) => {
      fake.pools.release(connection);
      fake.pools.abandon(second);
    };

    fake.pools.release(one);

    expect([first.outcomes, second.outcomes, third.outcomes]).toEqual([[one], [], [one]]);
    expect(fake.pools.snapshot()).toMatchObject([{ used: 2, free: 0, waiting: 0 }]);
    fake.pools.release(two);
  });

  test("it has no effect on a request that has its connection", async () => {
    const fake = new FakePool();
    const request = waiterFor();
    const held = await fake.lease(request);

    fake.pools.abandon(request);

    expect(fake.pools.snapshot()).toMatchObject([{ used: 1 }]);
    fake.pools.release(held);
  });
});

test("a request that waits cannot be queued twice", async () => {
  const fake = new FakePool();
  await fake.lease(waiterFor());
  const request = waiterFor();
  fake.pools.acquire(request);

  expect(() => fake.pools.acquire(request)).toThrow("waits already");
});
