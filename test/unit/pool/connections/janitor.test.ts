// The janitor sweeps at its interval while there is something to watch.
import { describe, expect, test } from "bun:test";
import { Janitor } from "#pool/connections/janitor.ts";
import { JANITOR_INTERVAL_MS } from "#pool/connections/limits.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

describe("Janitor", () => {
  test("it sweeps once per interval until nothing is left, then sets no timer", () => {
    const clock = new FakeClock();
    const sweeps: number[] = [];
    const janitor = new Janitor(clock, (now) => sweeps.push(now) < 3);

    janitor.start();
    janitor.start();
    clock.advance(10 * JANITOR_INTERVAL_MS);

    expect(sweeps).toEqual([1, 2, 3].map((count) => count * JANITOR_INTERVAL_MS));
    expect(clock.timerCount).toBe(0);
  });

  test("a stopped janitor does not sweep, and can be started again", () => {
    const clock = new FakeClock();
    const sweeps: number[] = [];
    const janitor = new Janitor(clock, (now) => sweeps.push(now) < 1);

    janitor.start();
    janitor.stop();
    clock.advance(2 * JANITOR_INTERVAL_MS);
    janitor.start();
    clock.advance(JANITOR_INTERVAL_MS);

    expect(sweeps).toEqual([3 * JANITOR_INTERVAL_MS]);
  });
});
