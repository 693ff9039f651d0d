import { expect, test } from "bun:test";
import { SystemClock } from "#pool/time/system-clock.ts";

const clock = new SystemClock();

function fired(delayMs: number): Promise<number> {
  const start = clock.now();
  return new Promise((resolve) => {
    clock.schedule(delayMs, () => resolve(clock.now() - start));
  });
}

test("a timer never fires before its time, whatever the fraction", async () => {
  for (const delayMs of [0, 0.3, 1.2, 1.9, 3]) {
    expect(await fired(delayMs)).toBeGreaterThanOrEqual(delayMs);
  }
});

test("a negative delay fires at once", async () => {
  expect(await fired(-1000)).toBeLessThan(500);
});

test("a timer longer than the runtime's maximum does not fire at once", async () => {
  let count = 0;
  const timer = clock.schedule(2 ** 31 + 1000, () => count++);
  const endless = clock.schedule(Number.POSITIVE_INFINITY, () => count++);
  await fired(5);

  expect(count).toBe(0);
  timer.cancel();
  endless.cancel();
});

test("a cancelled timer does not fire, and cancelling it after it fired is harmless", async () => {
  const order: string[] = [];
  const cancelled = clock.schedule(1, () => order.push("cancelled"));
  const kept = clock.schedule(1, () => order.push("kept"));
  cancelled.cancel();
  await fired(5);
  kept.cancel();

  expect(order).toEqual(["kept"]);
});

test("a waiting timer does not keep the process alive", async () => {
  const script = `
    import { SystemClock } from "#pool/time/system-clock.ts";
    new SystemClock().schedule(60_000, () => {});
  `;
  const child = Bun.spawn([process.execPath, "-e", script], {
    cwd: `${import.meta.dir}/../../../..`,
    stdio: ["ignore", "inherit", "inherit"],
    timeout: 20_000,
  });

  expect(await child.exited).toBe(0);
});

test("wall time counts from 1970", () => {
  expect(Math.abs(clock.wallNow() - Date.now())).toBeLessThan(1000);
});
