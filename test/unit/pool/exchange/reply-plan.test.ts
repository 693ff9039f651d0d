// The queue of answers itself: order, growth, and what is owed when the connection is lost.
import { describe, expect, test } from "bun:test";
import { Expect, Fate, ReplyPlan } from "#pool/exchange/reply-plan.ts";
import { server } from "#test/support/wire-frames.ts";

test("entries come out in order when the ring has grown while it was wrapped around", () => {
  const plan = new ReplyPlan();
  for (let i = 0; i < 10; i++) plan.expect(Expect.PARSE);
  for (let i = 0; i < 10; i++) plan.pop();
  for (let i = 0; i < 40; i++) plan.expect(i % 2 === 0 ? Expect.BIND : Expect.EXECUTE);

  const kinds: number[] = [];
  while (plan.length > 0) {
    kinds.push(plan.headKind);
    plan.pop();
  }

  expect(kinds).toEqual(
    Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? Expect.BIND : Expect.EXECUTE)),
  );
});

test("the empty plan has no head", () => {
  const plan = new ReplyPlan();

  expect([plan.length, plan.headKind, plan.headFate, plan.headHook, plan.takeLocal()]).toEqual([
    0,
    0,
    Fate.FORWARD,
    undefined,
    undefined,
  ]);
});

describe("what is owed", () => {
  test("each ReadyForQuery that the client waits for counts, ours among them, hidden ones not", () => {
    const plan = new ReplyPlan();
    plan.expect(Expect.PARSE);
    plan.expect(Expect.SYNC);
    plan.expect(Expect.QUERY, Fate.HIDE_ALL);
    plan.expect(Expect.FUNCTION_CALL);
    plan.answerQuery(server.ready("I"));
    plan.answer(server.parseComplete());

    expect(plan.readyOwed).toBe(3);
  });

  test("giving up tells every hook once", () => {
    const plan = new ReplyPlan();
    const told: string[] = [];
    plan.expect(Expect.PARSE, Fate.FORWARD, { failed: () => told.push("parse") });
    plan.answer(server.parseComplete(), () => told.push("local"));

    plan.abandon();
    plan.abandon();

    expect({ told, length: plan.length }).toEqual({ told: ["parse", "local"], length: 0 });
  });
});

test("a failed request is marked until its ReadyForQuery has come", () => {
  const plan = new ReplyPlan();
  plan.expect(Expect.QUERY);
  plan.expect(Expect.QUERY);

  plan.fail(server.error("22012", "division by zero"));
  const first = plan.hasHeadFailed;
  plan.pop();

  expect([first, plan.hasHeadFailed]).toEqual([true, false]);
});
