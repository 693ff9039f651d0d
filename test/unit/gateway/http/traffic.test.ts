import { expect, test } from "bun:test";
import { Traffic } from "#gateway/http/traffic.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

test("a stop waits for the requests in flight", async () => {
  const clock = new FakeClock();
  const traffic = new Traffic();
  const request = Promise.withResolvers<void>();
  const order: string[] = [];
  const tracked = traffic.track(() => request.promise).then(() => order.push("request"));

  const drained = traffic.drain(clock, 1_000).then(() => order.push("drained"));
  request.resolve();
  await Promise.all([tracked, drained]);

  expect(order).toEqual(["request", "drained"]);
  expect({ isDraining: traffic.isDraining, timers: clock.timerCount }).toEqual({
    isDraining: true,
    timers: 0,
  });
});

test("a stop does not wait past its deadline, nor at all when nothing is in flight", async () => {
  const clock = new FakeClock();
  const busy = new Traffic();
  void busy.track(() => new Promise(() => {}));

  const drained = busy.drain(clock, 1_000);
  clock.advance(1_000);

  await drained;
  await new Traffic().drain(clock, 2_000);
});

test("a request that fails is in flight no longer", async () => {
  const traffic = new Traffic();
  const failed = traffic.track(() => Promise.reject(new Error("bug")));

  expect(await failed.catch((error: unknown) => String(error))).toBe("Error: bug");
  await traffic.drain(new FakeClock(), 1_000);
});
