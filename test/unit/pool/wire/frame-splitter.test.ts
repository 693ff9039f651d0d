// Frames out of chunks: whole ones, large ones as a prefix and a stream, and what can't be a frame.
import { describe, expect, test } from "bun:test";
import { type FrameSink, FrameSplitter } from "#pool/wire/frame-splitter.ts";
import { WHOLE_FRAME_MAX, concatBytes } from "#pool/wire/message-types.ts";
import { client, int32 } from "#test/support/wire-frames.ts";

class Recorder implements FrameSink {
  readonly events: string[] = [];
  readonly frames: Uint8Array[] = [];
  onFrame: (() => void) | undefined;

  frame(type: number, chunk: Uint8Array, start: number, end: number): void {
    this.events.push(`${String.fromCharCode(type)} ${end - start}`);
    this.frames.push(chunk.subarray(start, end));
    this.onFrame?.();
  }

  largeStart(type: number, prefix: Uint8Array, sizeBytes: number): void {
    this.events.push(`large ${String.fromCharCode(type)} ${prefix.length} of ${sizeBytes}`);
  }

  largeBytes(bytes: Uint8Array, isLast: boolean): void {
    this.events.push(`more ${bytes.length}${isLast ? " last" : ""}`);
  }

  violation(reason: string): void {
    this.events.push(`violation: ${reason}`);
  }
}

function splitting(frameBytesMax = 1_000_000): { sink: Recorder; splitter: FrameSplitter } {
  const sink = new Recorder();
  return { sink, splitter: new FrameSplitter(sink, frameBytesMax) };
}

/** A frame of so many bytes in all. */
function frameOf(size: number): Uint8Array {
  const frame = new Uint8Array(size);
  frame[0] = "d".charCodeAt(0);
  frame.set(int32(size - 1), 1);
  return frame;
}

describe("whole frames", () => {
  test("several frames in one chunk are delivered in order", () => {
    const { sink, splitter } = splitting();

    splitter.push(concatBytes([client.sync(), client.query("select 1"), client.flush()]));

    expect(sink.events).toEqual(["S 5", "Q 14", "H 5"]);
    expect(splitter.isMidFrame).toBe(false);
  });

  test("a frame that comes byte by byte is delivered once, with its last byte", () => {
    const { sink, splitter } = splitting();
    const bytes = client.query("select 1");

    for (const byte of bytes.subarray(0, -1)) splitter.push(new Uint8Array([byte]));
    const before = [...sink.events];
    const wasMidFrame = splitter.isMidFrame;
    splitter.push(bytes.subarray(-1));

    expect({ before, wasMidFrame, after: sink.events }).toEqual({
      before: [],
      wasMidFrame: true,
      after: ["Q 14"],
    });
  });

  test("a frame of the largest size that is kept comes whole, one byte more makes it large", () => {
    const { sink, splitter } = splitting();

    splitter.push(frameOf(WHOLE_FRAME_MAX));
    splitter.push(frameOf(WHOLE_FRAME_MAX + 1));

    expect(sink.events).toEqual([
      `d ${WHOLE_FRAME_MAX}`,
      `large d ${WHOLE_FRAME_MAX} of ${WHOLE_FRAME_MAX + 1}`,
      "more 1 last",
    ]);
  });

  test("a view into a large chunk that begins a frame does not keep the chunk alive", () => {
    const { sink, splitter } = splitting();
    const chunk = concatBytes([frameOf(60_000), client.query("select 1").subarray(0, 7)]);

    splitter.push(chunk);
    chunk.fill(0);
    splitter.push(client.query("select 1").subarray(7));

    expect(sink.events).toEqual(["d 60000", "Q 14"]);
  });
});

describe("large frames", () => {
  test("the next frame begins behind the last byte of a large one", () => {
    const { sink, splitter } = splitting();

    splitter.push(concatBytes([frameOf(WHOLE_FRAME_MAX + 10), client.sync()]));

    expect(sink.events).toEqual([
      `large d ${WHOLE_FRAME_MAX} of ${WHOLE_FRAME_MAX + 10}`,
      "more 10 last",
      "S 5",
    ]);
  });

  test("the rest of a large frame passes through in the pieces it comes in", () => {
    const { sink, splitter } = splitting();
    const bytes = frameOf(WHOLE_FRAME_MAX + 100);

    splitter.push(bytes.subarray(0, WHOLE_FRAME_MAX));
    const isMidLarge = splitter.isMidLargeFrame;
    splitter.push(bytes.subarray(WHOLE_FRAME_MAX, WHOLE_FRAME_MAX + 40));
    splitter.push(bytes.subarray(WHOLE_FRAME_MAX + 40));

    expect(isMidLarge).toBe(true);
    expect(sink.events.slice(1)).toEqual(["more 40", "more 60 last"]);
  });
});

describe("violations", () => {
  test("the longest frame that is allowed passes, one byte more is a violation before its body has come", () => {
    const allowed = splitting(1_000);
    const refused = splitting(1_000);

    allowed.splitter.push(frameOf(1_000));
    refused.splitter.push(frameOf(1_001).subarray(0, 5));

    expect(allowed.sink.events).toEqual(["d 1000"]);
    expect(refused.sink.events).toEqual([
      "violation: message of 1000 bytes exceeds max_packet_size",
    ]);
  });

  test.each([0, 3, -1, -2_147_483_648])("a length of %d is a violation", (length) => {
    const { sink, splitter } = splitting();

    splitter.push(concatBytes([new Uint8Array([81]), int32(length)]));

    expect(sink.events).toEqual([`violation: invalid message length ${length}`]);
  });

  test("nothing is delivered after a violation", () => {
    const { sink, splitter } = splitting();

    splitter.push(concatBytes([new Uint8Array([81]), int32(0), client.sync()]));
    splitter.push(client.sync());

    expect(sink.events).toEqual(["violation: invalid message length 0"]);
  });
});

describe("suspension", () => {
  test("suspended from inside a delivery it stops behind that frame, and resumes where it stopped", () => {
    const { sink, splitter } = splitting();
    sink.onFrame = () => splitter.suspend();

    splitter.push(concatBytes([client.sync(), client.flush()]));
    splitter.push(client.query("select 1"));
    const before = [...sink.events];
    splitter.resume();
    splitter.resume();

    expect(before).toEqual(["S 5"]);
    expect(sink.events).toEqual(["S 5", "H 5", "Q 14"]);
  });

  test("what is pushed from inside a delivery follows the chunk that is being delivered", () => {
    const { sink, splitter } = splitting();
    let isFirst = true;
    sink.onFrame = () => {
      if (isFirst) splitter.push(client.query("select 1"));
      isFirst = false;
    };

    splitter.push(concatBytes([client.sync(), client.flush()]));

    expect(sink.events).toEqual(["S 5", "H 5", "Q 14"]);
  });
});
