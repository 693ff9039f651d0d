// The monitor against a scripted server: cadence, epochs, staleness, re-opening.
import { expect, test } from "bun:test";
import {
  PositionMonitor,
  SAMPLE_AGE_MAX_MS,
  type MonitorEvent,
  type PollDemand,
} from "#pool/consistency/position-monitor.ts";
import { FakeClock } from "#test/support/fake-clock.ts";
import { elapse, ScriptedServer, settle, SYSTEM } from "./scripted-server.ts";

interface Watch {
  readonly clock: FakeClock;
  readonly script: ScriptedServer;
  readonly monitor: PositionMonitor;
  readonly events: MonitorEvent[];
  demand: PollDemand;
  changes: number;
}

/** The process was stopped for a while: time went on, no timer ran. */
class SleepyClock extends FakeClock {
  #sleptMs = 0;

  override now(): number {
    return super.now() + this.#sleptMs;
  }

  sleep(ms: number): void {
    this.#sleptMs += ms;
  }
}

async function watch(
  prepare: (script: ScriptedServer) => void = () => {},
  clock: FakeClock = new FakeClock(),
): Promise<Watch> {
  const script = new ScriptedServer(clock, "one");
  prepare(script);
  const events: MonitorEvent[] = [];
  let mark = 0;
  const watched: Watch = {
    clock,
    script,
    events,
    demand: "idle",
    changes: 0,
    monitor: new PositionMonitor({
      server: script.server,
      openControl: () => script.open(),
      clock,
      random: () => 0,
      demand: () => watched.demand,
      pollSent: () => ++mark,
      changed: () => watched.changes++,
      count: (event) => events.push(event),
    }),
  };
  watched.monitor.start();
  await settle();
  return watched;
}

function pollTimes(script: ScriptedServer, from = 0): number[] {
  return script.polls.map((poll) => poll.at).filter((at) => at >= from);
}

test("the first answer tells role, history and position", async () => {
  const { monitor } = await watch();

  expect(monitor.sample).toEqual({
    isInRecovery: true,
    isReplayPaused: false,
    identity: {
      systemIdentifier: SYSTEM,
      timeline: 1,
      blockSize: 8192,
      segmentSize: 16_777_216,
      versionNumber: 180_004,
    },
    position: { systemIdentifier: SYSTEM, timeline: 1, lsn: 0x1000_0000n },
    sentAt: 0,
    mark: 1,
  });
});

test("an idle server is asked every 250 ms, sooner by up to a quarter with jitter", async () => {
  const { clock, script } = await watch();

  await elapse(clock, 1000);

  expect(pollTimes(script)).toEqual([0, 250, 500, 750, 1000]);
});

test("while somebody waits the gaps are 1, 1, 2, 4, 8 and then 10 ms", async () => {
  const watched = await watch();
  watched.demand = "waiting";
  watched.monitor.demandChanged();

  await elapse(watched.clock, 46);

  expect(pollTimes(watched.script)).toEqual([0, 1, 2, 4, 8, 16, 26, 36, 46]);
});

test("a new waiter starts the short gaps anew and moves the planned poll forward", async () => {
  const watched = await watch();
  watched.demand = "waiting";
  watched.monitor.demandChanged();
  await elapse(watched.clock, 28);

  watched.monitor.demandChanged();
  await elapse(watched.clock, 4);

  expect(pollTimes(watched.script, 17)).toEqual([26, 28, 30, 32]);
});

test("traffic and sampling have gaps of their own", async () => {
  const watched = await watch();
  watched.demand = "traffic";
  watched.monitor.demandChanged();
  await elapse(watched.clock, 50);
  // The poll at 75 is planned already; its own next one is not.
  watched.demand = "sampling";
  await elapse(watched.clock, 225);

  expect(pollTimes(watched.script)).toEqual([0, 25, 50, 75, 175, 275]);
});

test("an answer that is awaited is never overtaken by a second poll", async () => {
  const watched = await watch();
  watched.script.behaviour = "held";
  watched.demand = "waiting";
  watched.monitor.demandChanged();
  await elapse(watched.clock, 20);

  watched.monitor.demandChanged();
  await elapse(watched.clock, 20);

  expect(pollTimes(watched.script)).toEqual([0, 1]);
});

test("a server that hangs is forgotten 2 s after its last answer was asked for, its connection closed after 5 s", async () => {
  const { clock, script, monitor, events } = await watch();
  script.behaviour = "hangs";
  await elapse(clock, SAMPLE_AGE_MAX_MS - 1);
  const before = { hasSample: monitor.sample !== undefined, epoch: script.server.epoch };

  await elapse(clock, 1);
  const after = { hasSample: monitor.sample !== undefined, epoch: script.server.epoch };
  // The hanging poll was sent at 250.
  await elapse(clock, 3_249);
  const stillOpen = script.opened.length;
  await elapse(clock, 1);

  expect([before, after]).toEqual([
    { hasSample: true, epoch: 0 },
    { hasSample: false, epoch: 1 },
  ]);
  expect([stillOpen, script.opened]).toEqual([1, [0, 5_250]]);
  expect(events).toEqual(["monitor_stale", "monitor_lost"]);
});

test("a sample is too old even before the timer that drops it has run", async () => {
  const sleepy = new SleepyClock();
  const { monitor } = await watch(() => {}, sleepy);

  sleepy.sleep(SAMPLE_AGE_MAX_MS);
  const atLimit = monitor.sample !== undefined;
  sleepy.sleep(0.5);

  expect([atLimit, monitor.sample]).toEqual([true, undefined]);
});

test("an answer that took longer than 2 s is not used", async () => {
  const { clock, script, monitor } = await watch();
  script.behaviour = "held";
  await elapse(clock, 250 + SAMPLE_AGE_MAX_MS + 1);

  script.release();
  await settle();
  const late = monitor.sample;
  script.behaviour = "answers";
  await elapse(clock, 2);

  expect([late, monitor.sample?.sentAt]).toEqual([undefined, 2_252]);
});

test("a first answer that is too late to be used begins no epoch that would have to end", async () => {
  const watched = await watch((one) => (one.behaviour = "held"));
  await elapse(watched.clock, SAMPLE_AGE_MAX_MS + 1);

  watched.script.release();
  await elapse(watched.clock, 1);

  expect([watched.changes, watched.script.server.epoch]).toEqual([0, 0]);
});

test("a lost connection ends the epoch at once and is replaced at once when it was stable", async () => {
  const { clock, script, monitor } = await watch();
  await elapse(clock, 1_000);

  script.breakConnections();
  const lost = { sample: monitor.sample, epoch: script.server.epoch };
  await elapse(clock, 1);

  expect(lost).toEqual({ sample: undefined, epoch: 1 });
  expect([script.opened, monitor.sample?.position.lsn]).toEqual([[0, 1_000], 0x1000_0000n]);
});

test("an answer that arrives together with the connection's end is not used", async () => {
  const { clock, script, monitor } = await watch();
  script.behaviour = "held";
  await elapse(clock, 250);

  script.release();
  script.breakConnections();
  await settle();
  const lost = [monitor.sample, script.server.epoch];
  script.behaviour = "answers";
  await elapse(clock, 250);

  expect(lost).toEqual([undefined, 1]);
  expect(monitor.sample?.sentAt).toBe(500);
});

test("a connection that breaks young is replaced after 250 ms", async () => {
  const { clock, script } = await watch();
  await elapse(clock, 999);

  script.breakConnections();
  await elapse(clock, 250);

  expect(script.opened).toEqual([0, 1_249]);
});

test("a server that refuses is asked again after 250 ms doubling up to 5 s", async () => {
  const { clock, script, monitor, events } = await watch((one) => (one.behaviour = "refuses"));

  await elapse(clock, 18_000);

  expect(script.opened).toEqual([0, 250, 750, 1_750, 3_750, 7_750, 12_750, 17_750]);
  expect(monitor.lastError).toMatchObject({ code: "ERR_CONNECT_FAILED" });
  expect(new Set(events)).toEqual(new Set(["monitor_lost"]));
});

test("a server that was found again is asked with short delays the next time", async () => {
  const { clock, script, monitor } = await watch((one) => (one.behaviour = "refuses"));
  await elapse(clock, 800);
  script.behaviour = "answers";
  await elapse(clock, 1_000);
  const error = monitor.lastError;

  script.breakConnections();
  await elapse(clock, 250);

  expect([script.opened, error]).toEqual([[0, 250, 750, 1_750, 2_050], undefined]);
});

test("a changed postmaster start time begins an epoch and drops the position, though the connection stayed", async () => {
  const { clock, script, monitor, events } = await watch();
  script.startedAt = "2026-01-01 00:00:09+00";
  script.lsn = 0x2000_0000n;

  await elapse(clock, 250);
  const between = monitor.sample;
  await elapse(clock, 1);

  expect([between, script.server.epoch, events]).toEqual([undefined, 1, ["epoch_reset"]]);
  expect(monitor.sample?.position.lsn).toBe(0x2000_0000n);
  expect(script.polls.at(-1)).toEqual({ at: 251, withIdentity: true });
});

test("a promotion begins an epoch with the new timeline", async () => {
  const { clock, script, monitor } = await watch();
  script.isInRecovery = false;
  script.timeline = 2;

  await elapse(clock, 251);

  expect([script.server.epoch, monitor.sample?.isInRecovery]).toEqual([1, false]);
  expect(monitor.sample?.position.timeline).toBe(2);
});

test("a position that moves back begins an epoch", async () => {
  const { clock, script, monitor, events } = await watch();
  script.lsn -= 1n;

  await elapse(clock, 251);

  expect([script.server.epoch, events]).toEqual([1, ["epoch_reset"]]);
  expect(monitor.sample?.position.lsn).toBe(0x0fff_ffffn);
});

test("a replica that follows a new timeline is noticed within a second and begins an epoch", async () => {
  const { clock, script, monitor } = await watch();
  script.timeline = 2;
  await elapse(clock, 999);
  const before = monitor.sample?.position.timeline;

  await elapse(clock, 1);

  expect([before, monitor.sample?.position.timeline, script.server.epoch]).toEqual([1, 2, 1]);
});

test("a primary's identity is asked for once", async () => {
  const { clock, script } = await watch((one) => (one.isInRecovery = false));

  await elapse(clock, 5_000);

  expect(script.polls.filter((poll) => poll.withIdentity)).toHaveLength(1);
});

test("a steady server never changes its epoch", async () => {
  const { clock, script } = await watch();
  for (let second = 0; second < 5; second++) {
    script.lsn += 1_000n;
    await elapse(clock, 1_000);
  }

  expect(script.server.epoch).toBe(0);
});

test("an answer that cannot be read closes the connection", async () => {
  const { clock, script, monitor } = await watch();
  await elapse(clock, 1_000);
  script.behaviour = "lies";

  await elapse(clock, 250);

  expect(monitor.sample).toBeUndefined();
  expect(monitor.lastError).toMatchObject({ code: "ERR_SERVER_PROTOCOL", sqlState: "08P01" });
  expect(script.server.epoch).toBe(1);
});

test("a stopped monitor leaves no timer, no connection and no sample", async () => {
  const { clock, script, monitor } = await watch();

  monitor.stop();

  expect([clock.timerCount, script.connectionCount, monitor.sample]).toEqual([0, 0, undefined]);
});

test("a connection that opens after the stop is closed", async () => {
  const clock = new FakeClock();
  const script = new ScriptedServer(clock, "one");
  const gate = Promise.withResolvers<void>();
  const monitor = new PositionMonitor({
    server: script.server,
    openControl: () => gate.promise.then(() => script.open()),
    clock,
    random: () => 0,
    demand: () => "idle",
    pollSent: () => 1,
    changed: () => {},
    count: () => {},
  });
  monitor.start();

  monitor.stop();
  gate.resolve();
  await settle();

  expect([script.opened.length, script.connectionCount, script.polls]).toEqual([1, 0, []]);
});
