// Arbitrary histories of requests, releases, failures, losses, reloads and time; the model checks every step.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { PoolModel, type Step } from "./pool-model.ts";

const RUNS = 300;
// 100 on average: no minimum, so that a failing history shrinks to what matters.
const STEPS_MAX = 200;

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant("acquire" as const) },
    { weight: 4, arbitrary: fc.constant("open succeeds" as const) },
    { weight: 4, arbitrary: fc.constant("release" as const) },
    {
      weight: 6,
      arbitrary: fc.constantFrom(
        "discard" as const,
        "abandon" as const,
        "open fails" as const,
        "rekey succeeds" as const,
        "rekey fails" as const,
        "connection is lost" as const,
        "connection is closing" as const,
        "time passes" as const,
        "reload" as const,
      ),
    },
  ),
  pick: fc.nat(63),
  detail: fc.nat(63),
  isSettled: fc.boolean(),
});

describe("ConnectionPools", () => {
  test("under any history nobody shares, nobody overtakes, no limit breaks, and every request ends once", async () => {
    const totals = { assignments: 0, rekeys: 0, evictions: 0, timeouts: 0, openFailures: 0 };

    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: STEPS_MAX, size: "max" }), async (steps) => {
        const model = new PoolModel();
        for (const next of steps) {
          await model.run(next);
        }
        await model.finish();
        for (const { counters } of model.pool.pools.statistics()) {
          totals.assignments += counters.assignments;
          totals.rekeys += counters.rekeys;
          totals.evictions += counters.evictions;
          totals.timeouts += counters.timeouts;
          totals.openFailures += counters.openFailures;
        }
        await model.close();
      }),
      { numRuns: RUNS },
    );

    // The histories did reach each branch, many times.
    for (const total of Object.values(totals)) {
      expect(total).toBeGreaterThan(RUNS / 4);
    }
  });
});
