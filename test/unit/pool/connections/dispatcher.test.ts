// Which connection a request gets, and what is opened for it.
import { describe, expect, test } from "bun:test";
import { PoolError } from "#pool/errors.ts";
import {
  CONNECT_TIMEOUT_MS,
  FakePool,
  FakeRequest,
  fakeProfile,
  fakeServer,
  settle,
} from "./fake-pool.ts";

const A = fakeServer("a");
const B = fakeServer("b");
const REFUSED = new PoolError("ERR_SERVER_LOGIN_REFUSED", "no such role", { sqlState: "28000" });

describe("matching", () => {
  test("a new connection is asked for with all that the request says, and granted after acquire", async () => {
    const fake = new FakePool();
    const profile = fakeProfile();
    const request = new FakeRequest({ servers: [A], profile, principal: "p", startupOptions: "o" });
    fake.clock.advance(10);

    const atOnce = fake.pools.acquire(request);
    const asked = fake.opens.map((open) => open.request);
    const connection = await fake.succeed();

    expect(atOnce).toBeUndefined();
    expect(asked).toEqual([
      {
        profile,
        principal: "p",
        startupOptions: "o",
        server: A,
        deadline: 10 + CONNECT_TIMEOUT_MS,
      },
    ]);
    expect(request.outcomes).toEqual([connection]);
  });

  test("an equal request gets the FREE connection at once, the warmest of several", async () => {
    const fake = new FakePool();
    const first = await fake.lease(new FakeRequest({ servers: [A] }));
    const second = await fake.lease(new FakeRequest({ servers: [A] }));
    fake.pools.release(second);
    fake.pools.release(first);

    expect(fake.pools.acquire(new FakeRequest({ servers: [A] }))).toBe(first);
  });

  test.each([
    ["profile", { profile: fakeProfile({ name: "web" }) }],
    ["generation", { profile: fakeProfile({ generation: 2 }) }],
    ["database", { profile: fakeProfile({ database: "other" }) }],
    ["user", { profile: fakeProfile({ user: "other" }) }],
    ["set of startup options", { startupOptions: "x" }],
  ])("a request of another %s opens another connection", async (_part, parts) => {
    const fake = new FakePool();
    fake.pools.release(await fake.lease(new FakeRequest({ servers: [A] })));

    const request = new FakeRequest({ servers: [A], ...parts });

    expect(fake.pools.acquire(request)).toBeUndefined();
    expect(fake.opens.length).toBe(1);
    expect(fake.connections.map(({ isRekeying }) => isRekeying)).toEqual([false]);
  });

  test("a request of another principal changes the coldest FREE connection of its kind", async () => {
    const fake = new FakePool();
    const alice = await fake.lease(new FakeRequest({ servers: [A], principal: "alice" }));
    const carol = await fake.lease(new FakeRequest({ servers: [A], principal: "carol" }));
    fake.pools.release(alice);
    fake.pools.release(carol);
    const bob = new FakeRequest({ servers: [A], principal: "bob" });

    fake.pools.acquire(bob);
    const isRekeying = [alice.isRekeying, carol.isRekeying];
    alice.finishRekey();
    await settle();

    expect(isRekeying).toEqual([true, false]);
    expect(bob.outcomes).toEqual([alice]);
    fake.pools.release(alice);
    expect(fake.pools.acquire(new FakeRequest({ servers: [A], principal: "bob" }))).toBe(alice);
  });

  test("a connection that is changing its principal is lent to nobody else", async () => {
    const fake = new FakePool();
    const profile = fakeProfile({ defaultPoolSize: 1 });
    const alice = new FakeRequest({ servers: [A], profile, principal: "alice" });
    fake.pools.release(await fake.lease(alice));
    fake.pools.acquire(new FakeRequest({ servers: [A], profile, principal: "bob" }));
    const again = new FakeRequest({ servers: [A], profile, principal: "alice" });

    expect(fake.pools.acquire(again)).toBeUndefined();
    expect(fake.opens.length).toBe(0);
  });

  test("when the change of principal fails, a connection is opened instead", async () => {
    const fake = new FakePool();
    const alice = await fake.lease(new FakeRequest({ servers: [A], principal: "alice" }));
    fake.pools.release(alice);
    const bob = new FakeRequest({ servers: [A], principal: "bob" });
    fake.pools.acquire(bob);

    alice.failRekey();
    await settle();
    const opened = await fake.succeed();

    expect(bob.outcomes).toEqual([opened]);
    expect(fake.pools.snapshot()).toMatchObject([{ used: 1, free: 0, opening: 0 }]);
  });

  test("a connection that is lost right after its change of principal is not handed out", async () => {
    const fake = new FakePool();
    const alice = await fake.lease(new FakeRequest({ servers: [A], principal: "alice" }));
    fake.pools.release(alice);
    const bob = new FakeRequest({ servers: [A], principal: "bob" });
    fake.pools.acquire(bob);

    alice.finishRekey();
    alice.lose();
    await settle();
    const opened = await fake.succeed();

    expect(bob.outcomes).toEqual([opened]);
  });

  test("a FREE connection that is closing is not handed out", async () => {
    const fake = new FakePool();
    const closing = await fake.lease(new FakeRequest({ servers: [A] }));
    fake.pools.release(closing);
    closing.isOpen = false;

    expect(fake.pools.acquire(new FakeRequest({ servers: [A] }))).toBeUndefined();
    expect(fake.opens.length).toBe(1);
  });
});

describe("servers", () => {
  test("opening on the first server comes before a FREE connection on the second", async () => {
    const fake = new FakePool();
    fake.pools.release(await fake.lease(new FakeRequest({ servers: [B] })));

    expect(fake.pools.acquire(new FakeRequest({ servers: [A, B] }))).toBeUndefined();
    expect(fake.opens.map(({ request }) => request.server.name)).toEqual(["a"]);
  });

  test("a server at its limit yields to the next, and one below it does not", async () => {
    const fake = new FakePool();
    const onB = await fake.lease(new FakeRequest({ servers: [B] }));
    fake.pools.release(onB);
    const both = { servers: [A, B] };

    fake.pools.acquire(new FakeRequest(both));
    fake.pools.acquire(new FakeRequest(both));
    const openedOn = fake.opens.map(({ request }) => request.server.name);
    const third = fake.pools.acquire(new FakeRequest(both));

    expect(openedOn).toEqual(["a", "a"]);
    expect(third).toBe(onB);
  });

  test("a failed open moves its waiter on to the next server", async () => {
    const fake = new FakePool();
    const request = new FakeRequest({ servers: [A, B] });
    fake.pools.acquire(request);

    await fake.fail(REFUSED);
    const connection = await fake.succeed();

    expect(connection.server).toBe(B);
    expect(request.outcomes).toEqual([connection]);
  });
});

describe("openings", () => {
  test("an earlier release serves who opened, and the opened connection serves the next in line", async () => {
    const fake = new FakePool();
    const held = await fake.lease(new FakeRequest({ servers: [A] }));
    const first = new FakeRequest({ servers: [A] });
    const second = new FakeRequest({ servers: [A] });
    fake.pools.acquire(first);
    fake.pools.acquire(second);

    fake.pools.release(held);
    const opened = await fake.succeed();

    expect([first.outcomes, second.outcomes]).toEqual([[held], [opened]]);
    expect(fake.opens.length).toBe(0);
  });

  test("an open whose waiter has left serves the next equal request instead of a second open", async () => {
    const fake = new FakePool();
    const leaver = new FakeRequest({ servers: [A] });
    const next = new FakeRequest({ servers: [A] });
    fake.pools.acquire(leaver);
    fake.pools.abandon(leaver);
    fake.pools.acquire(next);

    expect(fake.opens.length).toBe(1);
    const opened = await fake.succeed();
    expect([leaver.outcomes, next.outcomes]).toEqual([[], [opened]]);
  });

  test("an opened connection that nobody waits for any more becomes FREE", async () => {
    const fake = new FakePool();
    const leaver = new FakeRequest({ servers: [A] });
    fake.pools.acquire(leaver);
    fake.pools.abandon(leaver);

    const opened = await fake.succeed();

    expect(fake.pools.acquire(new FakeRequest({ servers: [A] }))).toBe(opened);
  });

  test("a connection that is lost before it is handed out counts as a failed open", async () => {
    const fake = new FakePool();
    const request = new FakeRequest({ servers: [A] });
    fake.pools.acquire(request);

    const opening = fake.succeed();
    for (const connection of fake.connections) {
      connection.isOpen = false;
    }
    await opening;

    expect(request.outcomes).toMatchObject([{ code: "ERR_CONNECTION_LOST", sqlState: "08006" }]);
  });
});
