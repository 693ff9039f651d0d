// Order and departures, one list at a time.
import { describe, expect, test } from "bun:test";
import { WaiterList } from "#pool/connections/waiter-list.ts";

describe("WaiterList", () => {
  test.each([
    ["first", 0, ["b", "c"]],
    ["middle", 1, ["a", "c"]],
    ["last", 2, ["a", "b"]],
  ])("the %s one leaves without a gap, and a newcomer goes to the end", (_which, index, left) => {
    const list = new WaiterList<string>();
    const places = ["a", "b", "c"].map((waiter) => list.add(waiter));

    for (const place of places.slice(index, index + 1)) {
      list.remove(place);
    }
    list.add("d");

    expect([...list]).toEqual([...left, "d"]);
  });

  test("it is empty before the first came and after the last left", () => {
    const list = new WaiterList<string>();
    const states = [list.isEmpty];
    const place = list.add("a");
    states.push(list.isEmpty);
    list.remove(place);
    states.push(list.isEmpty);

    expect(states).toEqual([true, false, true]);
    expect([...list]).toEqual([]);
  });

  test("each waiter may leave while it is at hand", () => {
    const list = new WaiterList<string>();
    const places = new Map(["a", "b", "c"].map((waiter) => [waiter, list.add(waiter)]));
    const seen: string[] = [];

    for (const waiter of list) {
      seen.push(waiter);
      const place = places.get(waiter);
      if (place !== undefined) {
        list.remove(place);
      }
    }

    expect(seen).toEqual(["a", "b", "c"]);
    expect(list.isEmpty).toBe(true);
  });
});
