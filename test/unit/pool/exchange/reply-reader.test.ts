// A server's bytes against the plan: what is forwarded, hidden or said by us.
import { describe, expect, test } from "bun:test";
import { Expect, Fate } from "#pool/exchange/reply-plan.ts";
import { RELEASE_BYTES_MIN, releaseBytes } from "#pool/transport/release-bytes.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { describeReplies, server } from "#test/support/wire-frames.ts";
import { ReaderBench } from "./reader-bench.ts";

describe("forwarding", () => {
  test("the answers to a pipeline are forwarded in one run", () => {
    const bench = new ReaderBench();
    for (const kind of [Expect.PARSE, Expect.BIND, Expect.DESCRIBE, Expect.EXECUTE, Expect.SYNC]) {
      bench.plan.expect(kind);
    }

    const forwarded = bench.receive(
      server.parseComplete(),
      server.bindComplete(),
      server.rowDescription("a"),
      server.dataRow("1"),
      server.commandComplete("SELECT 1"),
      server.ready("I"),
    );

    expect({ forwarded, calls: bench.forwardCalls, left: bench.plan.length }).toEqual({
      forwarded: ["1", "2", "T", "D 1", "C SELECT 1", "Z I"],
      calls: 1,
      left: 0,
    });
  });

  test("a short piece of a chunk outlives it, for it may be sent when the chunk has been released", () => {
    const { plan, reader } = new ReaderBench();
    const pieces: Uint8Array[] = [];
    reader.sink = { forward: (bytes) => pieces.push(bytes) };
    plan.expect(Expect.DESCRIBE);
    plan.expect(Expect.EXECUTE, Fate.HIDE_ALL);
    plan.expect(Expect.SYNC);
    const chunk = concatBytes([
      server.rowDescription("a"),
      server.dataRow("x".repeat(RELEASE_BYTES_MIN)),
      server.commandComplete("SELECT 1"),
      server.ready("I"),
    ]);

    reader.receive(chunk);
    releaseBytes(chunk);

    expect(chunk.length).toBe(0);
    expect(describeReplies(concatBytes(pieces))).toEqual(["T", "Z I"]);
  });

  test("a row larger than a chunk is passed on as it comes", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY);
    const row = server.dataRow("x".repeat(1_000));

    bench.receive(row.subarray(0, 100));
    const isMidForward = bench.reader.isMidForward;
    bench.receive(row.subarray(100), server.commandComplete("SELECT 1"), server.ready("I"));

    expect({ isMidForward, after: bench.reader.isMidForward, events: bench.events }).toEqual({
      isMidForward: true,
      after: false,
      events: ["complete", "ready I"],
    });
  });

  test("hidden answers in the middle split the run", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.PARSE, Fate.HIDE_SUCCESS);
    bench.plan.expect(Expect.BIND);
    bench.plan.expect(Expect.CLOSE, Fate.HIDE_ALL);
    bench.plan.expect(Expect.SYNC);

    const forwarded = bench.receive(
      server.parseComplete(),
      server.bindComplete(),
      server.closeComplete(),
      server.ready("I"),
    );

    expect(forwarded).toEqual(["2", "Z I"]);
  });

  test("several ParameterStatus in one reply are all seen and all forwarded", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY);

    const forwarded = bench.receive(
      server.commandComplete("SET"),
      server.parameterStatus("a", "1"),
      server.parameterStatus("b", "2"),
      server.ready("I"),
    );

    expect(forwarded).toEqual(["C SET", "S a=1", "S b=2", "Z I"]);
    expect(bench.events).toEqual(["complete", "parameter", "parameter", "ready I"]);
  });

  test("notifications reach the client whatever is hidden then", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY, Fate.HIDE_ALL);

    const forwarded = bench.receive(
      server.notice("hidden"),
      server.notification("jobs", "1"),
      server.commandComplete("SET"),
      server.ready("I"),
    );

    expect(forwarded).toEqual(["A"]);
  });

  test("the row of a hidden statement goes to whoever asked, whole, though it was torn", () => {
    const bench = new ReaderBench();
    const rows: string[] = [];
    bench.plan.expect(Expect.EXECUTE, Fate.HIDE_ALL, {
      row: (frame) => rows.push(...describeReplies(frame)),
      completed: () => rows.push("done"),
    });
    const row = server.dataRow("0/3000060");

    bench.receive(row.subarray(0, 9));
    bench.receive(row.subarray(9), server.commandComplete("SELECT 1"));

    expect(rows).toEqual(["D 0/3000060", "done"]);
  });
});

describe("our own answers", () => {
  test("they are said when their turn comes", () => {
    const bench = new ReaderBench();
    bench.plan.answer(server.parseComplete());
    bench.plan.expect(Expect.BIND);
    bench.plan.answer(server.closeComplete());
    bench.plan.expect(Expect.SYNC);

    bench.reader.answerLocally();
    const forwarded = bench.receive(server.bindComplete(), server.ready("I"));

    expect(forwarded).toEqual(["2", "3", "Z I"]);
  });

  test("one is never said inside a frame that is being forwarded", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.DESCRIBE);
    const description = server.rowDescription("a", "b");

    bench.receive(description.subarray(0, 20));
    const first = bench.forwarded;
    bench.plan.answer(server.parseComplete());
    bench.reader.answerLocally();
    bench.receive(description.subarray(20));

    expect(first).toEqual(description.subarray(0, 20));
    expect(bench.forwarded).toEqual(
      concatBytes([description.subarray(20), server.parseComplete()]),
    );
  });
});

describe("COPY FROM STDIN", () => {
  test("Syncs that were sent ahead of CopyInResponse are ignored by the server, and not waited for", () => {
    const bench = new ReaderBench();
    for (const kind of [Expect.EXECUTE, Expect.SYNC]) bench.plan.expect(kind);

    const forwarded = bench.receive(server.copyIn());
    const left = bench.plan.length;
    bench.plan.expect(Expect.SYNC);
    const end = bench.receive(server.commandComplete("COPY 2"), server.ready("I"));

    expect({ forwarded, left, end, events: bench.events[0] }).toEqual({
      forwarded: ["G"],
      left: 1,
      end: ["C COPY 2", "Z I"],
      events: "copy in open",
    });
  });

  test("a Sync behind a CopyDone that was sent ahead is answered", () => {
    const bench = new ReaderBench();
    for (const kind of [Expect.EXECUTE, Expect.SYNC, Expect.COPY_END, Expect.SYNC]) {
      bench.plan.expect(kind);
    }

    const forwarded = bench.receive(
      server.copyIn(),
      server.commandComplete("COPY 2"),
      server.ready("I"),
    );

    expect(forwarded).toEqual(["G", "C COPY 2", "Z I"]);
    expect({ left: bench.plan.length, event: bench.events[0] }).toEqual({
      left: 0,
      event: "copy in ended",
    });
  });

  test("the end of one copy in a string does not count for the next", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY);
    bench.plan.expect(Expect.COPY_END);

    bench.receive(server.copyIn(), server.commandComplete("COPY 1"), server.copyIn());

    expect(bench.events).toEqual(["copy in ended", "complete", "copy in open"]);
  });

  test("the end of a copy that failed at once is dropped", () => {
    const bench = new ReaderBench();
    bench.plan.expect(Expect.QUERY);
    bench.plan.expect(Expect.COPY_END);
    bench.plan.expect(Expect.QUERY);

    const forwarded = bench.receive(
      server.error("42P01", "no table"),
      server.ready("I"),
      server.emptyQuery(),
      server.ready("I"),
    );

    expect(forwarded).toEqual(["E 42P01 no table", "Z I", "I", "Z I"]);
  });
});

test("a torn frame behind the forwarded ones is known of while they are forwarded", () => {
  const bench = new ReaderBench();
  let hadPartial: boolean | undefined;
  bench.plan.expect(Expect.QUERY);
  bench.onForward = () => (hadPartial = bench.reader.hasPartialFrame);

  bench.receive(
    server.emptyQuery(),
    server.ready("I"),
    server.parameterStatus("a", "1").subarray(0, 6),
  );

  expect(hadPartial).toBe(true);
});
