// The launcher's lock against live, dead and recycled holders.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { acquireLauncherLock } from "#gateway/embedded/launcher-lock.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "walgate-lock-"));
  path = join(folder, "launcher.pid");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

test("the lock is refused while its holder lives, and free after the release", async () => {
  const release = await acquireLauncherLock(path);

  const refusal: unknown = await acquireLauncherLock(path).catch((error: unknown) => error);
  expect(refusal).toHaveProperty(
    "message",
    `already running (pid ${process.pid}); stop that one first`,
  );

  await release();
  expect(existsSync(path)).toBe(false);
  await (
    await acquireLauncherLock(path)
  )();
});

test.each([
  ["of a process that is gone", "999999999\n1\n"],
  ["of a pid that was given out again", `${process.pid}\nanother start\n`],
  ["without a pid", ""],
])("a lock %s counts for nothing", async (_title, text) => {
  await writeFile(path, text);

  await (
    await acquireLauncherLock(path)
  )();

  expect(existsSync(path)).toBe(false);
});
