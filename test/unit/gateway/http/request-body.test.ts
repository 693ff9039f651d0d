import { describe, expect, test } from "bun:test";
import { BodyReader, parseBody } from "#gateway/http/request-body.ts";
import { parameterText } from "#gateway/http/parameter-text.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

function post(
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
): Request {
  return new Request("http://gw/sql", { method: "POST", body, headers });
}

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

async function read(request: Request, bytesMax = 8) {
  const reader = new BodyReader({ bytesMax, timeoutMs: 1_000, clock: new FakeClock() });
  const result = await reader.read(request);
  return result.ok ? result.value : result.error.code;
}

describe("a body", () => {
  test("is taken up to the limit and refused beyond, by its length or by reading it", async () => {
    const bytes = new TextEncoder().encode("12345678");
    const more = new TextEncoder().encode("9");

    expect(await read(post(bytes, { "Content-Length": "8" }))).toBe("12345678");
    expect(await read(post("123456789", { "Content-Length": "9" }))).toBe("54000");
    expect(await read(post(streamOf(bytes)))).toBe("12345678");
    expect(await read(post(streamOf(bytes, more)))).toBe("54000");
    expect(await read(new Request("http://gw/sql", { method: "POST" }))).toBe("");
  });

  test("that is not UTF-8 is refused, not repaired", async () => {
    expect(await read(post(streamOf(new Uint8Array([0xff]))))).toBe("22021");
  });

  test("that does not come is given up at its own deadline", async () => {
    const clock = new FakeClock();
    const reader = new BodyReader({ bytesMax: 8, timeoutMs: 1_000, clock });
    const never = () => new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const late: string[] = [];
    const give = (name: string, request: Request) =>
      reader
        .read(request)
        .then((result) => late.push(result.ok ? "read" : `${name} ${result.error.code}`));

    const first = give("first", post(never()));
    clock.advance(600);
    const second = give("second", post(never()));
    const quick = give("quick", post("1234", { "Content-Length": "4" }));
    await quick;
    clock.advance(399);
    await Bun.sleep(0);
    const beforeTheFirst = [...late];
    clock.advance(1);
    await first;
    clock.advance(599);
    await Bun.sleep(0);
    const beforeTheSecond = [...late];
    clock.advance(1);
    await second;

    expect({ beforeTheFirst, beforeTheSecond, late, timers: clock.timerCount }).toEqual({
      beforeTheFirst: ["read"],
      beforeTheSecond: ["read", "first 08P01"],
      late: ["read", "first 08P01", "second 08P01"],
      timers: 0,
    });
  });

  test("is watched by one timer, however many there are, and by none once nothing is late", async () => {
    const clock = new FakeClock();
    const reader = new BodyReader({ bytesMax: 8, timeoutMs: 1_000, clock });
    const requests = Array.from({ length: 100 }, () => post("1234", { "Content-Length": "4" }));

    await Promise.all(requests.map((request) => reader.read(request)));
    const timers = clock.timerCount;
    clock.advance(1_000);

    expect({ timers, later: clock.timerCount }).toEqual({ timers: 1, later: 0 });
  });

  test("whose sender goes away is not complete", async () => {
    const broken = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new DOMException("gone", "AbortError")),
    });

    expect(await read(post(broken))).toBe("08P01");
  });
});

describe("the JSON of a body", () => {
  const value = (text: string) => {
    const result = parseBody(text, (body) => ({ ok: true, value: body }));
    return result.ok ? JSON.stringify(result.value) : result.error.code;
  };

  test("keeps the digits of its numbers", () => {
    expect(value('{"a":[ 1.0, -12345678901234567890],"b":"1"}')).toBe(
      '{"a":[1.0,-12345678901234567890],"b":"1"}',
    );
  });

  test("keeps every number as it came, exact in JavaScript or not", () => {
    const numbers = [
      ..."0 -1 7 123456789012345 999999999999999 9999999999999999 1000000000000000 -0 -0.0 1e5 1E5".split(
        " ",
      ),
      ..."1.50 0.1 -0e1 12345678901234567890 9007199254740993 1e400 -1.0e-5 0.25 -0.25 0.000001 0.0000001 0.00000012 0.10 12345678.1234567 12345678.12345678 1234567890.123456789 0.5e3 100000000000000000000000".split(
        " ",
      ),
    ];

    for (const number of numbers) {
      for (const blank of ["", " ", "\n\t"]) {
        expect(value(`{"a":${blank}${number}}`)).toBe(`{"a":${number}}`);
        expect(value(`{"a":[${blank}${number}${blank}]}`)).toBe(`{"a":[${number}]}`);
        expect(value(`{"a":[1,${blank}${number}]}`)).toBe(`{"a":[1,${number}]}`);
        expect(value(`{"a":{"b"${blank}:${blank}${number}}}`)).toBe(`{"a":{"b":${number}}}`);
      }
    }
  });

  test("must be an object", () => {
    for (const text of ["", "{", "1", "null", "[]", '"x"', "{'a':1}"]) {
      expect(value(text)).toBe("08P01");
    }
  });

  test("is refused when it is nested beyond what can be read", () => {
    const depth = 2_000_000;
    const text = `{"a":${"[".repeat(depth)}1${"]".repeat(depth)}}`;

    const result = parseBody(text, (body) => ({ ok: true, value: parameterText(body["a"]) }));

    expect(result).toMatchObject({ ok: false, error: { code: "54001" } });
  });

  test("is not repeated by the error", () => {
    const result = parseBody('{"query":hunter2}', () => ({ ok: true, value: undefined }));

    expect(JSON.stringify(result)).not.toContain("hunter2");
  });
});
