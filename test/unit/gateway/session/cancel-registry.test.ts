import { expect, test } from "bun:test";
import { CancelRegistry } from "#gateway/session/cancel-registry.ts";
import { readInt32 } from "#pool/wire/message-types.ts";
import { FakeClock } from "#test/support/fake-clock.ts";

interface Bench {
  readonly clock: FakeClock;
  readonly registry: CancelRegistry;
}

function bench(workerId = 0, peerId = 0, random = [0xff, 0xff, 0xff]): Bench {
  const clock = new FakeClock();
  const registry = new CancelRegistry({
    clock,
    workerId,
    peerId,
    randomBytes: (count) => Uint8Array.from(random.slice(0, count)),
  });
  return { clock, registry };
}

const NOBODY = { cancel: () => {} };
const wrongKey = new Uint8Array([1, 2, 3, 4]);

test("a key is the client's number, and 6 bits worker, 5 bits peer and 21 bits random", () => {
  const highest = bench(63, 31).registry.register(NOBODY);
  const lowest = bench(0, 0, [0, 0, 0]).registry.register(NOBODY);
  const between = bench(5, 9, [0xab, 0xcd, 0xef]).registry.register(NOBODY);
  const bits = readInt32(between.secretKey, 0) >>> 0;

  expect(highest).toEqual({ processId: 1, secretKey: new Uint8Array([255, 255, 255, 255]) });
  expect(lowest).toEqual({ processId: 1, secretKey: new Uint8Array(4) });
  expect([bits >>> 26, (bits >>> 21) & 31, bits & 0x1fffff]).toEqual([5, 9, 0xabcdef & 0x1fffff]);
});

test("a request reaches the client whose key it names, and no other", () => {
  const { registry } = bench();
  const reached: string[] = [];
  const first = registry.register({ cancel: () => reached.push("first") });
  registry.register({ cancel: () => reached.push("second") });

  const outcome = registry.request(first, "a");

  expect([outcome, reached]).toEqual(["canceled", ["first"]]);
});

test("a key that is unregistered, wrong, or of another length reaches nobody", () => {
  const { registry } = bench();
  let count = 0;
  const gone = registry.register({ cancel: () => count++ });
  const here = registry.register({ cancel: () => count++ });
  registry.unregister(gone.processId);

  const outcomes = [
    registry.request(gone, "a"),
    registry.request({ ...here, secretKey: wrongKey }, "a"),
    registry.request({ ...here, secretKey: here.secretKey.subarray(0, 3) }, "a"),
    registry.request({ ...here, secretKey: new Uint8Array(256) }, "a"),
    registry.request({ ...here, processId: 99 }, "a"),
  ];

  expect(outcomes).toEqual(outcomes.map(() => "wrong_key"));
  expect([count, registry.size]).toEqual([0, 1]);
});

test("an address has ten wrong keys, gets one more a second, and never more than ten", () => {
  const { clock, registry } = bench();
  const key = registry.register(NOBODY);
  const wrong = { ...key, secretKey: wrongKey };
  const allowed = (): number => {
    let count = 0;
    while (registry.request(wrong, "a") === "wrong_key") count++;
    return count;
  };

  const atFirst = allowed();
  clock.advance(999);
  const early = allowed();
  clock.advance(1);
  const afterOne = allowed();
  clock.advance(60_000);
  const afterMany = allowed();

  expect([atFirst, early, afterOne, afterMany]).toEqual([10, 0, 1, 10]);
});

test("an address without tries left is refused with the right key too, and others are not", () => {
  const { registry } = bench();
  const key = registry.register(NOBODY);
  for (let i = 0; i < 10; i++) registry.request({ ...key, secretKey: wrongKey }, "a");

  expect(registry.request(key, "a")).toBe("rate_limited");
  expect(registry.request(key, "b")).toBe("canceled");
});

test("right keys cost an address nothing", () => {
  const { registry } = bench();
  const key = registry.register(NOBODY);
  const outcomes = Array.from({ length: 50 }, () => registry.request(key, "a"));

  expect(new Set(outcomes)).toEqual(new Set(["canceled"]));
});
