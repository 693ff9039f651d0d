// Which reason a bounded wait ends with when its work and its signal fail together.
import { expect, test } from "bun:test";
import { Deadline } from "../../sdk/src/deadline.ts";

test("work that an abort makes fail ends with the signal's reason, not with its own", async () => {
  const controller = new AbortController();
  const reason = new Error("the user left");
  const deadline = new Deadline(60_000, controller.signal);

  const error = await deadline
    .bound(() => {
      controller.abort(reason);
      return Promise.reject(new Error("fetch was aborted"));
    })
    .catch((thrown: unknown) => thrown);

  expect(error).toBe(reason);
});

test("work that fails by itself keeps its own error", async () => {
  const failure = new Error("reset");

  const error = await new Deadline(60_000, undefined)
    .bound(() => Promise.reject(failure))
    .catch((thrown: unknown) => thrown);

  expect(error).toBe(failure);
});
