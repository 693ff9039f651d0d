import { describe, expect, test } from "bun:test";
import { parseBody, readBody } from "#gateway/http/request-body.ts";
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
  const result = await readBody(request, { bytesMax, timeoutMs: 1_000, clock: new FakeClock() });
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

  test("that does not come is given up at the deadline", async () => {
    const clock = new FakeClock();
    const never = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const limits = { bytesMax: 8, timeoutMs: 1_000, clock };

    const reading = readBody(post(never), limits);
    clock.advance(1_000);

    expect(await reading).toMatchObject({ ok: false, error: { code: "08P01" } });
    expect(clock.timerCount).toBe(0);
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

  test("must be an object", () => {
    for (const text of ["", "{", "1", "null", "[]", '"x"', "{'a':1}"]) {
      expect(value(text)).toBe("08P01");
    }
  });

  test("is refused when it is nested beyond what can be read", () => {
    const depth = 2_000_000;
    const result = value(`{"a":${"[".repeat(depth)}1${"]".repeat(depth)}}`);

    expect(result).toBe("54001");
  });

  test("is not repeated by the error", () => {
    const result = parseBody('{"query":hunter2}', () => ({ ok: true, value: undefined }));

    expect(JSON.stringify(result)).not.toContain("hunter2");
  });
});
