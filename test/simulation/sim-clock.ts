// Simulated time: one list of everything that is going to happen, in an order that only the seed decides.
import { drainMicrotasks } from "bun:jsc";
import type { Clock, Timer } from "#pool/time/clock.ts";

interface SimEvent extends Timer {
  readonly dueAt: number;
  /** Of two that are due at once, the one that was scheduled first. */
  readonly order: number;
  callback: (() => void) | undefined;
}

export class SimClock implements Clock {
  #now = 0;
  #order = 0;
  #pending = 0;
  /** A binary heap by due time, then order. */
  readonly #heap: SimEvent[] = [];

  /** Starts at 0; milliseconds. */
  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return WALL_START + this.#now;
  }

  /** Events that have neither happened nor been cancelled. */
  get pending(): number {
    return this.#pending;
  }

  schedule(delayMs: number, callback: () => void): Timer {
    return this.scheduleAt(this.#now + Math.max(0, delayMs), callback);
  }

  /** At exactly that time: a delay of the difference may be rounded to an earlier one, ahead of what it must follow. */
  scheduleAt(dueAt: number, callback: () => void): Timer {
    const event: SimEvent = {
      dueAt,
      order: this.#order++,
      callback,
      cancel: () => {
        if (event.callback === undefined) return;
        event.callback = undefined;
        this.#pending--;
      },
    };
    this.#pending++;
    this.#push(event);
    return event;
  }

  /** Lets everything happen that is due until then. Promises settle between two events, as they do between two of a runtime's. */
  runUntil(until: number): void {
    drainMicrotasks();
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.dueAt > until) break;
      this.#pop();
      const { callback } = next;
      if (callback === undefined) continue;
      next.callback = undefined;
      this.#pending--;
      this.#now = next.dueAt;
      callback();
      drainMicrotasks();
    }
    this.#now = Math.max(this.#now, until);
  }

  #push(event: SimEvent): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || isBefore(parent, event)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const moved = heap.pop();
    if (moved === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const left = heap[below];
      if (left === undefined) break;
      const right = heap[below + 1];
      if (right !== undefined && isBefore(right, left)) below++;
      const child = heap[below];
      if (child === undefined || isBefore(moved, child)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = moved;
  }
}

const WALL_START = Date.UTC(2026, 0, 1);

function isBefore(a: SimEvent, b: SimEvent): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
}
