// Whole requests and results of a database handle, with the gateway replaced by a fetcher.
import { describe, expect, test } from "bun:test";
import { connect } from "../../sdk/src/connect.ts";
import { FakeGateway, jsonResponse, numbersResponse, settle } from "./fake-gateway.ts";

const URL_BASE = "http://gateway.test:8080";

describe("request", () => {
  test("a template query is one POST with numbered placeholders and text parameters", async () => {
    const gateway = new FakeGateway(() => numbersResponse([1]));
    const db = connect({ url: URL_BASE, token: "header.payload.tag", fetcher: gateway });

    await db`select n from t where a = ${1} and b = ${"x"} and c = ${null}`;

    expect(gateway.seen).toEqual([
      {
        url: "http://gateway.test:8080/v1/query",
        method: "POST",
        redirect: "manual",
        headers: {
          "Content-Type": "application/json",
          Accept: "application/json",
          Authorization: "Bearer header.payload.tag",
        },
        body: {
          query: "select n from t where a = $1 and b = $2 and c = $3",
          params: ["1", "x", null],
        },
      },
    ]);
  });

  test("a text query sends its text unchanged", async () => {
    const gateway = new FakeGateway(() => numbersResponse([1]));
    const db = connect({ url: URL_BASE, fetcher: gateway });

    await db.query("select $2::int, $1", [true, 7n]);
    await db.query("select 1");

    expect(gateway.seen.map((request) => request.body)).toEqual([
      { query: "select $2::int, $1", params: ["true", "7"] },
      { query: "select 1", params: [] },
    ]);
  });

  test("without a token there is no Authorization header", async () => {
    const gateway = new FakeGateway(() => numbersResponse([]));

    await connect({ url: URL_BASE, fetcher: gateway })`select 1`;

    expect(gateway.seen[0]?.headers).toEqual({
      "Content-Type": "application/json",
      Accept: "application/json",
    });
  });

  test("a token function is asked before each query", async () => {
    const gateway = new FakeGateway(() => numbersResponse([]));
    let calls = 0;
    const token = (): Promise<string> => Promise.resolve(`token-${(calls += 1)}`);
    const db = connect({ url: URL_BASE, token, fetcher: gateway });

    await db`select 1`;
    await db`select 2`;

    expect(gateway.seen.map((request) => request.headers["Authorization"])).toEqual([
      "Bearer token-1",
      "Bearer token-2",
    ]);
  });

  test.each([
    ["https://gateway.test", "https://gateway.test/v1/query"],
    ["https://gateway.test/", "https://gateway.test/v1/query"],
    ["https://gateway.test/db//", "https://gateway.test/db/v1/query"],
    ["https://gateway.test/db?route=a#part", "https://gateway.test/db/v1/query?route=a"],
    [new URL("https://gateway.test/db"), "https://gateway.test/db/v1/query"],
  ])("the query path follows the path of the url (case %#)", async (url, asked) => {
    const gateway = new FakeGateway(() => numbersResponse([]));

    await connect({ url, fetcher: gateway })`select 1`;

    expect(gateway.seen.map((request) => request.url)).toEqual([asked]);
  });

  test("a plain query sends no read-after-write token, whatever the answers bring", async () => {
    const gateway = new FakeGateway(() => numbersResponse([], { "Walgate-Token": "wg1.a" }));
    const db = connect({ url: URL_BASE, fetcher: gateway });

    await db`insert into t values (1)`;
    await db`select 1`;

    expect(gateway.seen.map((request) => request.headers["Walgate-Token"])).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe("options", () => {
  test.each(["gateway.test", "postgres://gateway.test/db", "ftp://gateway.test", ""])(
    "the url %p is refused",
    (url) => {
      expect(() => connect({ url })).toThrow(
        new TypeError("url must be an absolute http or https URL"),
      );
    },
  );

  test("a url with a password is refused without repeating it", () => {
    expect(() => connect({ url: "https://user:secret@gateway.test" })).toThrow(
      new TypeError("url must not hold a user name or password; use the option token"),
    );
  });

  test.each([1, 2 ** 31 - 1])("a timeout of %p ms is accepted", (timeoutMs) => {
    expect(() => connect({ url: URL_BASE, timeoutMs })).not.toThrow();
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 31])("a timeout of %p ms is refused", (timeoutMs) => {
    expect(() => connect({ url: URL_BASE, timeoutMs })).toThrow(
      new TypeError("timeoutMs must be a whole number from 1 to 2147483647"),
    );
  });

  test.each(["", "two words", "line\nbreak", "käse"])(
    "a token that is no header value is refused without repeating it: %j",
    async (token) => {
      const gateway = new FakeGateway(() => numbersResponse([]));
      const query = connect({ url: URL_BASE, token, fetcher: gateway })`select 1`;

      const error = await query.result().catch((thrown: unknown) => thrown);

      expect(error).toEqual(
        new TypeError("the token must be visible ASCII characters without spaces"),
      );
      expect(gateway.seen).toEqual([]);
    },
  );

  test("an error of the token function reaches the caller as it is", async () => {
    const failure = new Error("identity provider is down");
    const db = connect({
      url: URL_BASE,
      token: () => Promise.reject(failure),
      fetcher: new FakeGateway(),
    });

    const error = await db`select 1`.result().catch((thrown: unknown) => thrown);

    expect(error).toBe(failure);
  });

  test("a call that is not a template is refused at once", () => {
    const db = connect({ url: URL_BASE, fetcher: new FakeGateway() });

    // @ts-expect-error -- what a caller without types may write
    expect(() => db("select 1")).toThrow(TypeError);
    // @ts-expect-error -- an array is not a template either
    expect(() => db(["select 1"])).toThrow(TypeError);
  });
});

describe("query", () => {
  test("a query is not sent before somebody asks for its result, and then once", async () => {
    const gateway = new FakeGateway(() => numbersResponse([5]));
    const query = connect({ url: URL_BASE, fetcher: gateway })`select n from t`;

    await settle();
    const before = gateway.seen.length;
    const answers = [
      await query,
      await query.one(),
      await query.maybe(),
      (await query.result()).rows,
    ];

    expect(before).toBe(0);
    expect(answers).toEqual([[{ n: 5 }], { n: 5 }, { n: 5 }, [{ n: 5 }]]);
    expect(gateway.seen.length).toBe(1);
  });

  test("a result holds rows, count, command, columns, token and server", async () => {
    const headers = { "Walgate-Token": "wg1.abc", "Walgate-Served-By": "replica:r1" };
    const gateway = new FakeGateway(() => numbersResponse([1, 2], headers));

    const result = await connect({ url: URL_BASE, fetcher: gateway })`select n from t`.result();

    expect(result).toEqual({
      rows: [{ n: 1 }, { n: 2 }],
      rowCount: 2,
      command: "SELECT",
      columns: [{ name: "n", type: 23 }],
      token: "wg1.abc",
      servedBy: "replica:r1",
    });
  });

  test("a statement without rows and count has an empty result", async () => {
    const body = { columns: [], rows: [], command: "CREATE", rowCount: null };
    const gateway = new FakeGateway(() => jsonResponse(body));

    const result = await connect({ url: URL_BASE, fetcher: gateway })`create table t ()`.result();

    expect(result).toEqual({ ...body, token: null, servedBy: null });
  });

  test("of columns with equal names the last one wins, and __proto__ is a column like others", async () => {
    const columns = [
      { name: "a", type: 23 },
      { name: "__proto__", type: 25 },
      { name: "a", type: 25 },
    ];
    const body = { columns, rows: [["1", "p", "last"]], command: "SELECT", rowCount: 1 };
    const gateway = new FakeGateway(() => jsonResponse(body));

    const row = await connect({ url: URL_BASE, fetcher: gateway })`select 1`.one();

    expect(Object.entries(row)).toEqual([
      ["a", "last"],
      ["__proto__", "p"],
    ]);
    expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
  });

  test.each([
    [0, "P0002", null],
    [1, { n: 0 }, { n: 0 }],
    [2, "21000", "21000"],
  ])("one() wants exactly one row and maybe() at most one: %p rows", async (count, one, maybe) => {
    const rows = Array.from({ length: count }, (_, index) => index);
    const gateway = new FakeGateway(() => numbersResponse(rows));
    const query = connect({ url: URL_BASE, fetcher: gateway })`select n from t`;
    const codeOf = (error: { code: string }): string => error.code;

    expect(await query.one().catch(codeOf)).toEqual(one);
    expect(await query.maybe().catch(codeOf)).toEqual(maybe);
  });
});
