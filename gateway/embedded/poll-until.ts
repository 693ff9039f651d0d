// Waits for a condition that nothing announces (a file's text, a replay position), never for ever.
import { ClusterError } from "./cluster-error.ts";

/** Short against a start of 80 ms, long against the cost of one look. */
const POLL_INTERVAL_MS = 10;

/** Waits until `isMet` answers true; throws ClusterError that names `what` after `timeoutMs`. */
export async function pollUntil(
  isMet: () => boolean | Promise<boolean>,
  timeoutMs: number,
  what: string,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await isMet())) {
    if (performance.now() >= deadline) {
      throw new ClusterError(`${what}: not within ${timeoutMs} ms`);
    }
    await Bun.sleep(POLL_INTERVAL_MS);
  }
}
