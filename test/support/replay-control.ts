// Makes the replicas of a test cluster lag: replay held back by a delay, paused, resumed, and waited for.
import type { Cluster, ServerNode } from "#gateway/embedded/cluster.ts";
import type { SeededRandom } from "./seeded-random.ts";

const WAIT_TIMEOUT_MS = 15_000;

/** Polls until `check` gives a value; fails after `timeoutMs`. */
export async function pollFor<T>(
  what: string,
  check: () => Promise<T | undefined>,
  timeoutMs: number = WAIT_TIMEOUT_MS,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await Bun.sleep(5);
  }
}

export async function pauseReplay(node: ServerNode): Promise<void> {
  await node.sql("select pg_wal_replay_pause()");
  await pollFor(`replay of ${node.name} is paused`, async () => {
    const [row] = await node.sql("select pg_get_wal_replay_pause_state() as state");
    return row?.["state"] === "paused" ? true : undefined;
  });
}

export async function resumeReplay(node: ServerNode): Promise<void> {
  await node.sql("select pg_wal_replay_resume()");
}

/**
 * `recovery_min_apply_delay`, which holds back commit records only. When this has returned every record that is replayed later sees
 * it: a new connection shows the value once the postmaster has signalled its children, and replay takes a signal before the next record.
 */
export async function setApplyDelay(node: ServerNode, delayMs: number): Promise<void> {
  await node.sql(`alter system set recovery_min_apply_delay = '${delayMs}ms'`);
  await node.sql("select pg_reload_conf()");
  await pollFor(`${node.name} has a delay of ${delayMs} ms`, async () => {
    const [row] = await node.sql(
      "select setting from pg_settings where name = 'recovery_min_apply_delay'",
    );
    return row?.["setting"] === String(delayMs) ? true : undefined;
  });
}

/** Waits until every replica has received all that the primary has flushed by now, and holds its last commit back. */
export async function whenCommitIsHeldBack(cluster: Cluster): Promise<void> {
  const [flushed] = await cluster.primary.sql("select pg_current_wal_flush_lsn()::text as lsn");
  const lsn = String(flushed?.["lsn"]);
  await Promise.all(
    cluster.replicas.map((node) =>
      pollFor(`${node.name} holds back the commit before ${lsn}`, async () => {
        const [row] = await node.sql(`select pg_last_wal_receive_lsn() >= '${lsn}'::pg_lsn
          and pg_last_wal_replay_lsn() < '${lsn}'::pg_lsn as is_held`);
        return row?.["is_held"] === true ? true : undefined;
      }),
    ),
  );
}

/** Mostly within the time that a read waits for a replica, which is 100 ms, and sometimes beyond it. */
function lateMs(random: SeededRandom): number {
  return random.chance(0.2) ? 150 : 20 + random.below(31);
}

/** Until `work` has ended the first replica applies commits late, now and then, and the second one stands still, now and then. */
export async function whileReplayStumbles<T>(
  cluster: Cluster,
  random: SeededRandom,
  work: () => Promise<T>,
): Promise<T> {
  const [late, halting] = cluster.replicas;
  if (late === undefined || halting === undefined) throw new Error("it takes two replicas");
  const end = new AbortController();
  const delays = async (): Promise<void> => {
    while (!end.signal.aborted) {
      await setApplyDelay(late, random.chance(0.3) ? 0 : lateMs(random));
      await Bun.sleep(random.below(400));
    }
    await setApplyDelay(late, 0);
  };
  const halts = async (): Promise<void> => {
    while (!end.signal.aborted) {
      await pauseReplay(halting);
      await Bun.sleep(random.below(200));
      await resumeReplay(halting);
      await Bun.sleep(random.below(80));
    }
  };
  const stumbling = Promise.all([delays(), halts()]);
  try {
    return await work();
  } finally {
    end.abort();
    await stumbling;
  }
}
