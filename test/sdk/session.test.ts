// A session's read-after-write token: one query after the other, in parallel, with errors, with a
// seed.
import { describe, expect, test } from "bun:test";
import type { Db } from "../../sdk/src/connect.ts";
import { connect } from "../../sdk/src/connect.ts";
import { QueueFullError, TimeoutError } from "../../sdk/src/errors.ts";
import { UNDER_WAY_MAX, WAITERS_MAX } from "../../sdk/src/turnstile.ts";
import { errorBody, FakeGateway, jsonResponse, numbersResponse, settle } from "./fake-gateway.ts";

function open(gateway: FakeGateway): Db {
  return connect({ url: "http://gateway.test", fetcher: gateway });
}

function withToken(token: string): Response {
  return numbersResponse([], { "Walgate-Token": token });
}

function sentTokens(gateway: FakeGateway): (string | undefined)[] {
  return gateway.seen.map((request) => request.headers["Walgate-Token"]);
}

describe("token", () => {
  test("each query carries the token of the answer before it", async () => {
    const tokens = ["wg1.a", "wg1.b", "wg1.c"];
    const gateway = new FakeGateway(() => withToken(tokens.shift() ?? ""));
    const session = open(gateway).session();
    const before = session.token;

    await session`insert into t values (1)`;
    await session.query("select 1");
    await session`select 2`;

    expect(before).toBeNull();
    expect(sentTokens(gateway)).toEqual([undefined, "wg1.a", "wg1.b"]);
    expect(session.token).toBe("wg1.c");
  });

  test("an answer without a token keeps the one held", async () => {
    const gateway = new FakeGateway(() => numbersResponse([]));
    const session = open(gateway).session("wg1.a");

    await session`select 1`;

    expect(session.token).toBe("wg1.a");
  });

  test("an error answer brings its token too", async () => {
    const body = errorBody({ message: "deferred constraint", code: "23503" });
    const gateway = new FakeGateway(() => jsonResponse(body, { "Walgate-Token": "wg1.b" }, 400));
    const session = open(gateway).session("wg1.a");

    const error = await session`commit`.result().catch((thrown: unknown) => thrown);

    expect(error).toMatchObject({ code: "23503" });
    expect(session.token).toBe("wg1.b");
  });

  test("two sessions of one handle share nothing", async () => {
    const gateway = new FakeGateway(() => withToken("wg1.a"));
    const db = open(gateway);
    const first = db.session();
    const second = db.session();

    await first`insert into t values (1)`;
    await second`select 1`;

    expect(sentTokens(gateway)).toEqual([undefined, undefined]);
  });

  test("parallel answers in any order leave no write uncovered", async () => {
    const gateway = new FakeGateway();
    const session = open(gateway).session("wg1.seed");
    const older = session`insert into t values (1)`.result();
    const newer = session`insert into t values (2)`.result();
    const olderRequest = await gateway.arrival(0);
    const newerRequest = await gateway.arrival(1);

    newerRequest.answer(withToken("wg1.newer"));
    await newer;
    olderRequest.answer(withToken("wg1.older"));
    await older;
    const both = session.token;
    const read = session`select 1`.result();
    (await gateway.arrival(2)).answer(withToken("wg1.merged"));
    await read;

    expect(sentTokens(gateway)).toEqual(["wg1.seed", "wg1.seed", "wg1.newer,wg1.older"]);
    expect([both, session.token]).toEqual(["wg1.newer,wg1.older", "wg1.merged"]);
  });

  test("a slow read that brings back a covered token does not make the session carry it again", async () => {
    const gateway = new FakeGateway();
    const session = open(gateway).session("wg1.a");
    const read = session`select 1`.result();
    const write = session`insert into t values (1)`.result();

    (await gateway.arrival(1)).answer(withToken("wg1.b"));
    await write;
    (await gateway.arrival(0)).answer(withToken("wg1.a"));
    await read;

    expect(session.token).toBe("wg1.b");
  });
});

describe("seed", () => {
  test.each([
    [undefined, null],
    [null, null],
    ["", null],
    ["  ", null],
    [" wg1.abc_-1 ", "wg1.abc_-1"],
    ["wg1.a,wg1.b", "wg1.a,wg1.b"],
    ["wg1.a, wg1.b", "wg1.a, wg1.b"],
    ["a".repeat(4096), "a".repeat(4096)],
  ])("the seed %j is the token %j", (seed, token) => {
    expect(open(new FakeGateway()).session(seed).token).toBe(token);
  });

  test.each(["a".repeat(4097), "wg1.a\nX-Other: 1", "wg1.a,", ",", "wg1 a", "wg1.ä"])(
    "the seed %j is refused without repeating it",
    (seed) => {
      expect(() => open(new FakeGateway()).session(seed)).toThrow(
        new TypeError("the seed of a session must be the token of another session"),
      );
    },
  );
});

describe("limits", () => {
  test("32 queries are under way, the others wait in order, and a newcomer overtakes none", async () => {
    const gateway = new FakeGateway();
    const session = open(gateway).session();
    const count = UNDER_WAY_MAX + 2;
    const queries = Array.from({ length: count }, (_, n) => session`select ${n}`.result());
    await settle();
    const atFirst = gateway.seen.length;

    gateway.pending[3]?.answer(withToken("wg1.a"));
    await queries[3];
    const newcomer = session`select 'newcomer'`.result();
    await settle();
    const afterOne = gateway.seen.slice(UNDER_WAY_MAX);
    for (const index of [4, 5]) {
      gateway.pending[index]?.answer(numbersResponse([]));
    }
    await settle();
    gateway.pending.at(-1)?.answer(numbersResponse([7]));

    expect(atFirst).toBe(UNDER_WAY_MAX);
    expect(afterOne.map(({ headers, body }) => [headers["Walgate-Token"], body])).toEqual([
      ["wg1.a", { query: "select $1", params: [String(UNDER_WAY_MAX)] }],
    ]);
    expect((await newcomer).rows).toEqual([{ n: 7 }]);
    expect(gateway.seen.length).toBe(count + 1);
  });

  test("a query that fails gives its place to the next one", async () => {
    const gateway = new FakeGateway();
    const session = open(gateway).session();
    const queries = Array.from({ length: UNDER_WAY_MAX + 1 }, (_, n) =>
      session`select ${n}`.result().catch((error: unknown) => error),
    );
    await settle();

    gateway.pending[0]?.fail(new Error("reset"));
    await queries[0];

    expect((await gateway.arrival(UNDER_WAY_MAX)).body).toEqual({
      query: "select $1",
      params: [String(UNDER_WAY_MAX)],
    });
  });

  test("a waiter that gives up leaves no gap in the queue", async () => {
    const gateway = new FakeGateway();
    const session = open(gateway).session();
    const controller = new AbortController();
    const reason = new Error("the user left");
    const busy = Array.from({ length: UNDER_WAY_MAX }, () => session`select 1`.result());
    const leaving = session.query("select 2", [], { signal: controller.signal }).result();
    const staying = session`select 3`.result();
    await settle();

    controller.abort(reason);
    const error = await leaving.catch((thrown: unknown) => thrown);
    gateway.pending[0]?.answer(numbersResponse([]));
    await busy[0];
    const next = await gateway.arrival(UNDER_WAY_MAX);
    next.answer(numbersResponse([3]));

    expect(error).toBe(reason);
    expect((await staying).rows).toEqual([{ n: 3 }]);
  });

  test("the time spent waiting counts, and no place is lost by it", async () => {
    const gateway = new FakeGateway();
    const db = connect({ url: "http://gateway.test", fetcher: gateway, timeoutMs: 5 });
    const session = db.session();
    const failures = await Promise.all(
      Array.from({ length: UNDER_WAY_MAX + 1 }, () =>
        session`select 1`.result().catch((error: unknown) => error),
      ),
    );
    const isFree = session`select 2`.result().catch((error: unknown) => error);
    await settle();

    expect(failures.every((error) => error instanceof TimeoutError)).toBe(true);
    expect(gateway.seen.at(-1)?.body).toEqual({ query: "select 2", params: [] });
    await isFree;
  });

  test("the last waiter is accepted and the first too many is refused", async () => {
    const gateway = new FakeGateway();
    const session = open(gateway).session();
    const controller = new AbortController();
    const run = (): Promise<unknown> =>
      session
        .query("select 1", [], { signal: controller.signal })
        .result()
        .catch((error: unknown) => error);
    const all = Array.from({ length: UNDER_WAY_MAX + WAITERS_MAX }, run);

    const refused = await run();
    controller.abort();
    const others = await Promise.all(all);

    expect(refused).toEqual(new QueueFullError(WAITERS_MAX));
    expect(others.filter((error) => error instanceof QueueFullError)).toEqual([]);
  });
});
