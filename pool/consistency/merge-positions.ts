// Merges what several tokens ask for into the least that satisfies all of them. Pure.
import type { Position } from "./position.ts";

/**
 * One position per system identifier and timeline, the highest; sorted by both, so that equal sets are equal lists.
 * Positions of two timelines cannot be compared without the switch point, so both are kept.
 * Associative, commutative, idempotent.
 */
export function mergePositions(
  a: readonly Position[],
  b: readonly Position[],
): readonly Position[] {
  const merged: Position[] = [];
  for (const position of [...a, ...b]) {
    const index = merged.findIndex((other) => hasSameHistory(other, position));
    const other = merged[index];
    if (other === undefined) merged.push(position);
    else if (other.lsn < position.lsn) merged[index] = position;
  }
  return merged.toSorted(compareHistories);
}

type History = Pick<Position, "systemIdentifier" | "timeline">;

/** Only then do two LSNs compare. */
export function hasSameHistory(a: History, b: History): boolean {
  return a.systemIdentifier === b.systemIdentifier && a.timeline === b.timeline;
}

function compareHistories(a: Position, b: Position): number {
  if (a.systemIdentifier !== b.systemIdentifier) {
    return a.systemIdentifier < b.systemIdentifier ? -1 : 1;
  }
  return a.timeline - b.timeline;
}
