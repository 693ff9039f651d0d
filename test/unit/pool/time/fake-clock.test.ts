import { expect, test } from "bun:test";
import { FakeClock } from "#test/support/fake-clock.ts";

test("timers run in order of their due time, then of their creation, at their own time", () => {
  const clock = new FakeClock();
  const order: [string, number][] = [];
  const note = (name: string) => (): void => void order.push([name, clock.now()]);
  clock.schedule(20, note("late"));
  clock.schedule(10, note("first"));
  clock.schedule(10, note("second"));
  clock.schedule(31, note("not yet"));

  clock.advance(30);

  expect(order).toEqual([
    ["first", 10],
    ["second", 10],
    ["late", 20],
  ]);
  expect([clock.now(), clock.timerCount, clock.nextDueAt]).toEqual([30, 1, 31]);
});

test("a timer that a callback adds runs in the same advance when it falls due on the way", () => {
  const clock = new FakeClock();
  const at: number[] = [];
  clock.schedule(10, () => clock.schedule(5, () => at.push(clock.now())));

  clock.advance(14);
  expect(at).toEqual([]);
  clock.advance(1);
  expect(at).toEqual([15]);
});

test("a cancelled timer does not run", () => {
  const clock = new FakeClock();
  let count = 0;
  const timer = clock.schedule(1, () => count++);
  timer.cancel();
  clock.advance(10);

  expect([count, clock.timerCount]).toEqual([0, 0]);
});

test("wall time moves with the clock, in whole milliseconds", () => {
  const clock = new FakeClock(1000);
  clock.advance(2.5);
  expect(clock.wallNow()).toBe(1002);
});
