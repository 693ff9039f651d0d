// Errors that a server sends, and bytes that no server should.
import { describe, expect, test } from "bun:test";
import { Expect, Fate } from "#pool/exchange/reply-plan.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { int32, server } from "#test/support/wire-frames.ts";
import { ReaderBench } from "./reader-bench.ts";

describe("errors", () => {
  test("an error takes with it what is behind it, up to the Sync", () => {
    const bench = new ReaderBench();
    const failed: (string | undefined)[] = [];
    const hook = (name: string) => ({
      failed: (error: Uint8Array | undefined) =>
        failed.push(`${name} ${error === undefined ? "skipped" : "failed"}`),
    });
    bench.plan.expect(Expect.PARSE, Fate.FORWARD, hook("parse"));
    bench.plan.expect(Expect.BIND, Fate.FORWARD, hook("bind"));
    bench.plan.expect(Expect.QUERY, Fate.FORWARD, hook("query"));
    bench.plan.expect(Expect.SYNC);
    bench.plan.expect(Expect.BIND, Fate.FORWARD, hook("next"));

    const forwarded = bench.receive(server.error("42601", "syntax error"), server.ready("I"));

    expect(forwarded).toEqual(["E 42601 syntax error", "Z I"]);
    expect(failed).toEqual(["parse failed", "bind skipped", "query skipped"]);
    expect(bench.plan.length).toBe(1);
  });

  test("what is sent after an error and ahead of the Sync is expected to go unanswered", () => {
    const bench = new ReaderBench();
    let skipped = 0;
    bench.plan.expect(Expect.PARSE);
    bench.receive(server.error("42601", "syntax error"));

    bench.plan.expect(Expect.BIND, Fate.FORWARD, { failed: () => skipped++ });
    bench.plan.expect(Expect.QUERY, Fate.FORWARD, { failed: () => skipped++ });
    bench.plan.answer(server.parseComplete(), () => skipped++);
    const isSkipping = bench.plan.isSkipping;
    bench.plan.expect(Expect.SYNC);
    const forwarded = bench.receive(server.ready("I"));

    expect({ skipped, isSkipping, forwarded, after: bench.plan.isSkipping }).toEqual({
      skipped: 3,
      isSkipping: true,
      forwarded: ["Z I"],
      after: false,
    });
  });

  test("an error in a Query takes nothing with it", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY);
    bench.plan.expect(Expect.QUERY);

    const forwarded = bench.receive(
      server.error("22012", "division by zero"),
      server.ready("I"),
      server.emptyQuery(),
      server.ready("I"),
    );

    expect(forwarded).toEqual(["E 22012 division by zero", "Z I", "I", "Z I"]);
  });

  test("an error at the Sync itself, from a deferred constraint, leaves its ReadyForQuery owed", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.SYNC);

    const first = bench.receive(server.error("23503", "foreign key"));
    const hasHeadFailed = bench.plan.hasHeadFailed;
    const second = bench.receive(server.ready("I"));

    expect({ first, hasHeadFailed, second }).toEqual({
      first: ["E 23503 foreign key"],
      hasHeadFailed: true,
      second: ["Z I"],
    });
  });

  test("in place of a hidden error the client reads the replacement", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.PARSE);
    bench.plan.expect(Expect.BIND, Fate.HIDE_ERROR, { replacement: server.error("26000", "ours") });
    bench.plan.expect(Expect.SYNC);

    const forwarded = bench.receive(
      server.parseComplete(),
      server.error("26000", "theirs"),
      server.ready("I"),
    );

    expect(forwarded).toEqual(["1", "E 26000 ours", "Z I"]);
  });

  test("an error that quotes megabytes is passed on without being kept", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY);
    const error = server.error("22P02", "x".repeat(3_000_000));
    let forwardedBytes = 0;

    for (let at = 0; at < error.length; at += 65_536) {
      bench.receive(error.subarray(at, at + 65_536));
      forwardedBytes += 65_536;
    }
    const rest = bench.receive(server.ready("I"));

    expect(forwardedBytes).toBeGreaterThan(3_000_000);
    expect({ rest, events: bench.events }).toEqual({
      rest: ["Z I"],
      events: ["error", "ready I"],
    });
  });

  test.each(["FATAL", "PANIC"])(
    "a %s error is not forwarded: the client is told once, by its relay",
    (severity) => {
      const bench = new ReaderBench();
      bench.plan.expect(Expect.QUERY);

      const forwarded = bench.receive(
        server.rowDescription("a"),
        server.dataRow("1"),
        server.error("57P01", "terminating connection", severity),
      );

      expect(forwarded).toEqual(["T", "D 1"]);
      expect(bench.events).toEqual([`fatal E ${severity} 57P01 terminating connection`]);
    },
  );

  test("an error that answers nothing means that the server closes", () => {
    const bench = new ReaderBench();

    expect(bench.receive(server.error("57P01", "terminating connection"))).toEqual([]);
    expect(bench.events).toEqual(["fatal E 57P01 terminating connection"]);
  });
});

describe("violations", () => {
  test.each([
    ["a length below 4", concatBytes([new Uint8Array([0x5a]), int32(3)])],
    ["a length below 0", concatBytes([new Uint8Array([0x44]), int32(-5)])],
    ["an endless CommandComplete", concatBytes([new Uint8Array([0x43]), int32(2_000_000)])],
    ["CopyBothResponse", concatBytes([new Uint8Array([0x57]), int32(7), new Uint8Array(3)])],
    ["an unknown type", concatBytes([new Uint8Array([0x7e]), int32(4)])],
    ["a ReadyForQuery without its status", concatBytes([new Uint8Array([0x5a]), int32(4)])],
    ["BindComplete that nothing asked for", server.bindComplete()],
    ["a row that nothing asked for", server.dataRow("1")],
  ])("%s breaks the connection", (_, bytes) => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.SYNC);

    bench.receive(bytes);
    bench.receive(server.ready("I"));

    expect(bench.events).toHaveLength(1);
    expect(bench.events[0]).toStartWith("violation: ");
  });

  test("ParseComplete and BindComplete in the wrong order are noticed", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.PARSE);
    bench.plan.expect(Expect.BIND);

    expect(bench.receive(server.bindComplete(), server.parseComplete())).toEqual([]);
    expect(bench.events).toEqual(["violation: unexpected message 2 from server"]);
  });

  test("the end of a row that was forwarded in part goes out before the violation is told", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY);
    const row = server.dataRow("x".repeat(100));
    bench.receive(row.subarray(0, 50));

    const forwarded = bench.receive(row.subarray(50), server.bindComplete());

    expect(forwarded).toEqual(["partial"]);
    expect(bench.reader.isMidForward).toBe(false);
  });
});
