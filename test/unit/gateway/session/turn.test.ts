import { expect, test } from "bun:test";
import { TURN_MS, Turn } from "#gateway/session/turn.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

test("a turn is over after its time, and a pause begins another one", async () => {
  const clock = new FakeClock();
  const turn = new Turn(clock);
  const seen: boolean[] = [];

  clock.advance(TURN_MS - 1);
  seen.push(turn.isOver);
  clock.advance(1);
  seen.push(turn.isOver);
  const paused = turn.pause();
  clock.advance(0);
  await paused;
  seen.push(turn.isOver);
  clock.advance(TURN_MS);
  seen.push(turn.isOver);

  expect(seen).toEqual([false, true, false, true]);
  expect(clock.timerCount).toBe(0);
});
