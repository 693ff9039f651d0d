// Two clusters at a time from one template: own ports, own data, and nothing left after stop().
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { caughtUp } from "#gateway/embedded/caught-up.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { removeAbandonedHomes, temporaryHome } from "#test/support/temporary-home.ts";

test("clusters at the same time share neither ports nor data", async () => {
  await using first = await testCluster();
  await using second = await testCluster({ replicas: 1, database: "other" });

  await first.primary.sql("CREATE TABLE mine AS SELECT 1 AS id");
  await caughtUp(first);

  const nodes = [first, second].flatMap(({ primary, replicas }) => [primary, ...replicas]);
  expect(nodes.map((node) => node.name)).toEqual([
    "primary",
    "replica1",
    "replica2",
    "primary",
    "replica1",
  ]);
  expect(new Set(nodes.map((node) => node.port)).size).toBe(5);
  expect(await first.replicas[1]?.sql("SELECT id FROM mine")).toEqual([{ id: 1 }]);
  expect(
    await second.primary.sql("SELECT to_regclass('mine') AS mine, current_database() AS name"),
  ).toEqual([{ mine: null, name: "other" }]);
});

test("a stopped cluster leaves no folder", async () => {
  const cluster = await testCluster({ replicas: 0 });

  await cluster.stop();

  expect(existsSync(cluster.home)).toBe(false);
});

test("homes of dead launchers are removed, those of live ones and new ones are kept", async () => {
  await using cluster = await testCluster({ replicas: 0 });
  const dead = await temporaryHome();
  await writeFile(join(dead, "launcher.pid"), "999999999\n1\n");
  await mkdir(join(dead, "data"));
  const filling = await temporaryHome();

  await removeAbandonedHomes();

  expect([dead, filling, cluster.home].map((home) => existsSync(home))).toEqual([
    false,
    true,
    true,
  ]);
  await rm(filling, { recursive: true });
});
