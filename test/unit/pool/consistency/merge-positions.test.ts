// What is kept when positions meet.
import { expect, test } from "bun:test";
import { mergePositions } from "#pool/consistency/merge-positions.ts";

test("of one history the higher position stays", () => {
  const low = { systemIdentifier: 1n, timeline: 1, lsn: 10n };
  const high = { systemIdentifier: 1n, timeline: 1, lsn: 11n };

  expect([mergePositions([low], [high]), mergePositions([high], [low])]).toEqual([[high], [high]]);
});

test("positions of different timelines or systems are all kept, in order of both", () => {
  const a = { systemIdentifier: 1n, timeline: 1, lsn: 10n };
  const b = { systemIdentifier: 1n, timeline: 2, lsn: 5n };
  const c = { systemIdentifier: 2n, timeline: 1, lsn: 7n };

  expect(mergePositions([c, a], [b])).toEqual([a, b, c]);
});

test("the arguments are left as they were", () => {
  const list = [{ systemIdentifier: 1n, timeline: 1, lsn: 10n }];

  mergePositions(list, [{ systemIdentifier: 1n, timeline: 1, lsn: 11n }]);

  expect(list).toEqual([{ systemIdentifier: 1n, timeline: 1, lsn: 10n }]);
});
