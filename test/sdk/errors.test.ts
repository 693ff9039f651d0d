// What each failure becomes: errors of the database, strangers that answer, no answer, too late an
// answer.
import { describe, expect, test } from "bun:test";
import type { Db } from "../../sdk/src/connect.ts";
import { connect } from "../../sdk/src/connect.ts";
import {
  ConnectionError,
  DatabaseError,
  TimeoutError,
  UnexpectedResponseError,
} from "../../sdk/src/errors.ts";
import type { FetchResponse } from "../../sdk/src/transport.ts";
import { errorBody, FakeGateway, jsonResponse, numbersResponse } from "./fake-gateway.ts";

const TOKEN = "header.payload.tag";

function open(gateway: FakeGateway, timeoutMs: number = 60_000): Db {
  return connect({ url: "http://gateway.test", token: TOKEN, fetcher: gateway, timeoutMs });
}

async function failureOf(response: () => FetchResponse): Promise<unknown> {
  return open(new FakeGateway(response))`select 1`.result().catch((error: unknown) => error);
}

/** Own properties, which toEqual() on errors does not compare. */
function fieldsOf(error: unknown): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  return error instanceof Error ? Object.assign(fields, { message: error.message }, error) : fields;
}

describe("database", () => {
  test("an error answer becomes a DatabaseError with all its fields", async () => {
    const given = {
      message: 'duplicate key value violates unique constraint "users_pkey"',
      code: "23505",
      severity: "ERROR",
      detail: "Key (id)=(1) already exists.",
      schema: "public",
      table: "users",
      constraint: "users_pkey",
      file: "nbtinsert.c",
      line: "666",
      routine: "_bt_check_unique",
    };

    const error = await failureOf(() => jsonResponse(errorBody(given), {}, 409));

    expect(error).toBeInstanceOf(DatabaseError);
    expect(fieldsOf(error)).toEqual({
      ...given,
      name: "DatabaseError",
      status: 409,
      hint: undefined,
      position: undefined,
      internalPosition: undefined,
      internalQuery: undefined,
      where: undefined,
      column: undefined,
      dataType: undefined,
    });
  });

  test("an error that carries every field keeps every field", async () => {
    const names = Object.keys(errorBody({}));
    const given = Object.fromEntries(names.map((name) => [name, `the ${name}`]));

    const error = await failureOf(() => jsonResponse({ ...given, code: "XX000" }, {}, 500));

    expect(fieldsOf(error)).toEqual({
      ...given,
      code: "XX000",
      name: "DatabaseError",
      status: 500,
    });
  });
});

describe("stranger", () => {
  const page = (): Response =>
    new Response("<h1>Bad gateway</h1>", {
      status: 502,
      headers: { "Content-Type": "text/html", Server: "edge-proxy" },
    });

  test("an answer that is not JSON names who gave it", async () => {
    const error = await failureOf(page);

    expect(error).toBeInstanceOf(UnexpectedResponseError);
    expect(fieldsOf(error)).toEqual({
      name: "UnexpectedResponseError",
      message: 'not an answer of the gateway: HTTP 502, text/html, from "edge-proxy"',
      code: "08P01",
      status: 502,
      contentType: "text/html",
      answeredBy: "edge-proxy",
    });
  });

  test("a stranger's name is cut to 100 characters", async () => {
    const error = await failureOf(() => jsonResponse({}, { Via: "v".repeat(101) }, 403));

    expect(fieldsOf(error)["answeredBy"]).toBe("v".repeat(100));
  });

  test.each([
    ["an error without SQLSTATE", { message: "Forbidden" }, 403],
    ["an error with a code that is no SQLSTATE", { message: "no", code: "E_FORBIDDEN" }, 403],
    ["an error without message", { code: "28000" }, 401],
    ["an error with status 200", errorBody({ message: "no", code: "28000" }), 200],
    ["an error with status 302", errorBody({ message: "no", code: "28000" }), 302],
    ["JSON that is no object", [], 400],
    ["a result with status 201", { columns: [], rows: [], command: "SELECT", rowCount: 0 }, 201],
    ["columns missing", { rows: [], command: "SELECT", rowCount: 0 }, 200],
    ["a column without type", result([{ name: "a" }], []), 200],
    ["a row with too few values", result([{ name: "a", type: 23 }], [[]]), 200],
    ["a row with too many values", result([], [["1"]]), 200],
    ["a value that is not text", result([{ name: "a", type: 23 }], [[1]]), 200],
    ["a row that is an object", result([{ name: "a", type: 23 }], [{ a: "1" }]), 200],
    ["rowCount missing", { columns: [], rows: [], command: "SELECT" }, 200],
    ["command missing", { columns: [], rows: [], rowCount: 0 }, 200],
  ])("%s is not an answer of the gateway", async (_title, body, status) => {
    const error = await failureOf(() => jsonResponse(body, {}, status));

    expect(error).toBeInstanceOf(UnexpectedResponseError);
  });

  function result(columns: unknown, rows: unknown): unknown {
    return { columns, rows, command: "SELECT", rowCount: 0 };
  }
});

describe("connection", () => {
  test("a fetch that fails becomes a ConnectionError with its cause and without the token", async () => {
    const gateway = new FakeGateway();
    const cause = new TypeError("fetch failed");
    const query = open(gateway)`select ${"a secret value"}`.result();
    (await gateway.arrival(0)).fail(cause);

    const error = await query.catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(ConnectionError);
    expect(fieldsOf(error)).toEqual({
      name: "ConnectionError",
      message: "no complete answer from http://gateway.test",
      code: "08006",
    });
    expect(error instanceof Error && error.cause).toBe(cause);
  });

  test("an answer that breaks off in its body becomes a ConnectionError", async () => {
    const broken = numbersResponse([1]);
    const error = await failureOf(() => ({
      status: 200,
      headers: broken.headers,
      text: () => Promise.reject(new Error("terminated")),
    }));

    expect(error).toBeInstanceOf(ConnectionError);
  });
});

describe("deadline", () => {
  const never = (): Promise<never> => new Promise(() => {});

  test("no answer within timeoutMs becomes a TimeoutError, and fetch is told to stop", async () => {
    const gateway = new FakeGateway();

    const error = await open(gateway, 5)`select 1`.result().catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(TimeoutError);
    expect(fieldsOf(error)).toEqual({
      name: "TimeoutError",
      message: "no complete answer within 5 ms",
      code: "57014",
      timeoutMs: 5,
    });
    expect(gateway.pending[0]?.signal.aborted).toBe(true);
  });

  test("the time covers the body as well", async () => {
    const gateway = new FakeGateway(() => {
      return { status: 200, headers: new Headers(), text: never };
    });

    const error = await open(gateway, 5)`select 1`.result().catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(TimeoutError);
  });

  test("the time covers the caller's token function as well", async () => {
    const db = connect({
      url: "http://gateway.test",
      token: never,
      fetcher: new FakeGateway(),
      timeoutMs: 5,
    });

    const error = await db`select 1`.result().catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(TimeoutError);
  });

  test("an aborted query rejects with the signal's own reason, and fetch is told to stop", async () => {
    const gateway = new FakeGateway();
    const controller = new AbortController();
    const reason = new Error("the user left");
    const query = open(gateway).query("select 1", [], { signal: controller.signal }).result();
    const request = await gateway.arrival(0);
    controller.abort(reason);
    request.fail(new DOMException("aborted", "AbortError"));

    const error = await query.catch((thrown: unknown) => thrown);

    expect(error).toBe(reason);
    expect(request.signal.aborted).toBe(true);
  });

  test("a query with an aborted signal is not sent", async () => {
    const gateway = new FakeGateway();
    const query = open(gateway).query("select 1", [], { signal: AbortSignal.abort() });

    const error = await query.result().catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(DOMException);
    expect(gateway.seen).toEqual([]);
  });
});
