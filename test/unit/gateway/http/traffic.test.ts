import { expect, test } from "bun:test";
import { Traffic } from "#gateway/http/traffic.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

test("a stop waits for the requests in flight", async () => {
  const clock = new FakeClock();
  const traffic = new Traffic();
  traffic.began();
  traffic.began();
  let isDrained = false;

  const drained = traffic.drain(clock, 1_000).then(() => {
    isDrained = true;
  });
  traffic.ended();
  await Bun.sleep(0);
  const wasDrainedEarly = isDrained;
  traffic.ended();
  await drained;

  expect({ wasDrainedEarly, isDraining: traffic.isDraining, timers: clock.timerCount }).toEqual({
    wasDrainedEarly: false,
    isDraining: true,
    timers: 0,
  });
});

test("a stop does not wait past its deadline, nor at all when nothing is in flight", async () => {
  const clock = new FakeClock();
  const busy = new Traffic();
  busy.began();

  const drained = busy.drain(clock, 1_000);
  clock.advance(1_000);

  await drained;
  await new Traffic().drain(clock, 2_000);
});
