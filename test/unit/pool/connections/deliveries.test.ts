// The order in which waiters are called back.
import { describe, expect, test } from "bun:test";
import { Deliveries } from "#pool/connections/deliveries.ts";
import { settle } from "./fake-pool.ts";

describe("Deliveries", () => {
  test("a callback that causes another one ends before that one begins", () => {
    const deliveries = new Deliveries();
    const events: string[] = [];
    deliveries.push(() => {
      events.push("first begins");
      deliveries.push(() => events.push("second"));
      deliveries.flush();
      events.push("first ends");
    });

    deliveries.flush();

    expect(events).toEqual(["first begins", "first ends", "second"]);
  });

  test("a callback that throws reaches the caller, and the others are still called", async () => {
    const deliveries = new Deliveries();
    const events: string[] = [];
    deliveries.push(() => {
      throw new Error("bug in a callback");
    });
    deliveries.push(() => events.push("second"));

    expect(() => deliveries.flush()).toThrow("bug in a callback");
    await settle();

    expect(events).toEqual(["second"]);
  });
});
