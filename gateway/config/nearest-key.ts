// Finds the key that the writer of a misspelt one most likely meant.

/** Longest unknown key that is compared; the cost is its length times that of each valid key. */
const COMPARED_CHARACTERS_MAX = 100;

/** Levenshtein's distance: insertions, deletions and replacements of one character. */
export function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      const removed = (previous[column] ?? 0) + 1;
      const inserted = (current[column - 1] ?? 0) + 1;
      current.push(Math.min(replaced, removed, inserted));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}

/** Undefined only without valid keys; the first of several that are equally near. */
export function nearestKey(unknown: string, validKeys: readonly string[]): string | undefined {
  const compared = unknown.slice(0, COMPARED_CHARACTERS_MAX).toLowerCase();
  let nearest: string | undefined;
  let distanceMin = Infinity;
  for (const key of validKeys) {
    const distance = editDistance(compared, key);
    if (distance < distanceMin) {
      nearest = key;
      distanceMin = distance;
    }
  }
  return nearest;
}
