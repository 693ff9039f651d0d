import { describe, expect, test } from "bun:test";
import { Cors } from "#gateway/http/cors.ts";

function applied(allowed: readonly string[], origin: string | undefined): Record<string, string> {
  const answer = {};
  new Cors(allowed).apply(new Headers(origin === undefined ? {} : { Origin: origin }), answer);
  return answer;
}

const EXPOSED = "Neon-Request-Id, Walgate-Token, Walgate-Served-By, Retry-After";

describe("an answer", () => {
  test("says nothing to browsers unless origins are configured", () => {
    expect(applied([], "https://a.example")).toEqual({});
  });

  test("is open to all with *", () => {
    const headers = {
      "Access-Control-Allow-Origin": "*",
      "Access-Control-Expose-Headers": EXPOSED,
    };

    expect(applied(["*"], "https://a.example")).toEqual(headers);
    expect(applied(["*"], undefined)).toEqual(headers);
  });

  test("names an allowed origin and no other, and tells caches that it depends on it", () => {
    const allowed = ["https://a.example", "https://b.example"];

    expect(applied(allowed, "https://b.example")).toEqual({
      Vary: "Origin",
      "Access-Control-Allow-Origin": "https://b.example",
      "Access-Control-Expose-Headers": EXPOSED,
    });
    expect(applied(allowed, "https://c.example")).toEqual({ Vary: "Origin" });
    expect(applied(allowed, undefined)).toEqual({ Vary: "Origin" });
  });
});

test("a preflight allows every header of the driver and of ours, to allowed origins only", () => {
  const preflight = (allowed: readonly string[]) =>
    new Cors(allowed).preflight(new Headers({ Origin: "https://a.example" }));

  const answer = preflight(["*"]);
  expect(answer.status).toBe(200);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    allow: "OPTIONS, POST",
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "POST, OPTIONS",
    "access-control-max-age": "86400",
  });
  const headers = answer.headers.get("Access-Control-Allow-Headers")?.split(", ");
  expect(headers).toEqual(
    expect.arrayContaining(["Neon-Batch-Deferrable", "Content-Type", "Walgate-Token"]),
  );
  expect(preflight([]).headers.has("Access-Control-Allow-Headers")).toBe(false);
});
