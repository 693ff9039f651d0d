import { expect, test } from "bun:test";
import { SharedTimer } from "#gateway/session/shared-timer.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

function started() {
  const clock = new FakeClock();
  const fired: string[] = [];
  const timer = new SharedTimer(clock, 100);
  return { clock, fired, timer, wait: (name: string) => timer.schedule(() => fired.push(name)) };
}

test("each wait is over at its own time, in order, with one timer for all", () => {
  const { clock, fired, wait } = started();
  const seen: string[][] = [];

  wait("a");
  clock.advance(30);
  wait("b");
  wait("c");
  const timers = clock.timerCount;
  for (const ms of [69, 1, 29, 1, 1_000]) {
    clock.advance(ms);
    seen.push([...fired]);
  }

  expect({ timers, left: clock.timerCount }).toEqual({ timers: 1, left: 0 });
  expect(seen).toEqual([[], ["a"], ["a"], ["a", "b", "c"], ["a", "b", "c"]]);
});

test("a cancelled wait is never over, and cancelling it again does nothing", () => {
  const { clock, fired, timer, wait } = started();

  const first = wait("first");
  const second = wait("second");
  timer.cancel(first);
  timer.cancel(first);
  clock.advance(100);
  timer.cancel(second);
  wait("third");
  clock.advance(100);

  expect(fired).toEqual(["second", "third"]);
  expect(clock.timerCount).toBe(0);
});

test("a wait that begins when another one is over has all of its time, and no second timer", () => {
  const { clock, fired, timer, wait } = started();

  timer.schedule(() => wait("next"));
  wait("with it");
  clock.advance(100);
  const timers = clock.timerCount;
  clock.advance(99);
  const early = [...fired];
  clock.advance(1);

  expect({ timers, early, fired }).toEqual({
    timers: 1,
    early: ["with it"],
    fired: ["with it", "next"],
  });
});
