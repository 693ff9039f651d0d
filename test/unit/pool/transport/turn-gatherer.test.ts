// What goes out when: with many writers in a turn all of it at the turn's end, with few of them at once.
import { expect, test } from "bun:test";
import { TurnGatherer } from "#pool/transport/turn-gatherer.ts";

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Writer {
  readonly isAccepted = true;
  sent = 0;
  isWaiting = false;
  readonly #gatherer: TurnGatherer;

  constructor(gatherer: TurnGatherer) {
    this.#gatherer = gatherer;
  }

  /** As a socket does; true when the write was held back. */
  write(): boolean {
    this.isWaiting = this.#gatherer.addWriter(this);
    if (!this.isWaiting) this.sent++;
    return this.isWaiting;
  }

  handleGathered(): void {}

  sendGathered(): void {
    if (this.isWaiting) this.sent++;
    this.isWaiting = false;
  }
}

async function turn(writers: readonly Writer[]): Promise<number> {
  const held = writers.filter((writer) => writer.write()).length;
  await endOfTurn();
  return held;
}

function createWriters(count: number): Writer[] {
  const gatherer = new TurnGatherer();
  return Array.from({ length: count }, () => new Writer(gatherer));
}

test("a lone writer is never held back", async () => {
  const writers = createWriters(1);
  const held: number[] = [];
  for (let i = 0; i < 100; i++) held.push(await turn(writers));

  expect(Math.max(...held)).toBe(0);
  expect(writers[0]?.sent).toBe(100);
});

test("many writers of one turn are held back to its end, after some turns to find that out", async () => {
  const writers = createWriters(20);
  const held: number[] = [];
  for (let i = 0; i < 10; i++) held.push(await turn(writers));

  expect(held.at(0)).toBe(0);
  expect(held.at(-1)).toBe(20);
  expect(writers.map(({ sent }) => sent)).toEqual(writers.map(() => 10));
});

test("when the others fall silent, a lone writer is soon sent at once again", async () => {
  const writers = createWriters(20);
  for (let i = 0; i < 10; i++) await turn(writers);
  const held: number[] = [];
  for (let i = 0; i < 50; i++) held.push(await turn(writers.slice(0, 1)));

  expect(held.at(0)).toBe(1);
  expect(held.at(-1)).toBe(0);
});

test("a long turn sends in between", async () => {
  const writers = createWriters(200);
  for (let i = 0; i < 3; i++) await turn(writers);
  for (const writer of writers) writer.write();

  expect(writers.filter(({ sent }) => sent === 4).length).toBeGreaterThan(100);
  await endOfTurn();
  expect(writers.filter(({ sent }) => sent === 4).length).toBe(200);
});

test("what was read on connections of ours is handled ahead of what was read on accepted ones, and all of it ahead of writes", async () => {
  const gatherer = new TurnGatherer();
  const done: string[] = [];
  const reader = (name: string, isAccepted: boolean) => ({
    isAccepted,
    handleGathered: () => {
      done.push(name);
      if (gatherer.addWriter(writerOf(name))) return;
      done.push(`${name} writes at once`);
    },
    sendGathered: () => {},
  });
  const writerOf = (name: string) => ({
    isAccepted: true,
    handleGathered: () => {},
    sendGathered: () => done.push(`${name} writes`),
  });
  const writers = Array.from({ length: 40 }, () => writerOf(""));
  for (const each of writers) gatherer.addWriter(each);
  await endOfTurn();
  const isGathered = [
    gatherer.addReader(reader("client", true)),
    gatherer.addReader(reader("server", false)),
  ];
  expect([isGathered, done]).toEqual([[true, true], []]);
  await endOfTurn();

  expect(done).toEqual(["server", "client", "server writes", "client writes"]);
});

test("in a long turn what was read is handled in between", async () => {
  const gatherer = new TurnGatherer();
  let handled = 0;
  const socket = {
    isAccepted: true,
    handleGathered: () => handled++,
    sendGathered: () => {},
  };
  for (let i = 0; i < 40; i++) gatherer.addWriter(socket);
  await endOfTurn();
  for (let i = 0; i < 200; i++) gatherer.addReader({ ...socket, isAccepted: i % 2 === 0 });

  expect(handled).toBe(192);
  await endOfTurn();
  expect(handled).toBe(200);
});
