// How a failing run is told: one line that repeats it.
import type { PlantedBug } from "./planted-bugs.ts";

export function replayLine(seed: number, bug: PlantedBug | undefined): string {
  return `replay: bun run simulate --seed ${seed}${bug === undefined ? "" : ` --bug ${bug.name}`}`;
}
