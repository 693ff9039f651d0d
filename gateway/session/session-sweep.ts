// What is done to all client sessions together: ending idle ones, and ending every one at shutdown.
import type { Timer } from "#pool/time/clock.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** One pass over all sessions a second costs less than a timer for each. */
const SWEEP_INTERVAL_MS = 1_000;
/** How often a shutdown looks whether busy sessions have ended. */
const DRAIN_INTERVAL_MS = 20;

export interface Sweep {
  stop(): void;
}

/** Ends sessions that have been idle for `client_idle_timeout`; does nothing when that is 0. */
export function sweepIdleSessions(context: GatewayContext): Sweep {
  const timeoutMs = context.config.gateway.client_idle_timeout * 1_000;
  const { clock } = context.environment;
  let timer: Timer | undefined;
  const sweep = (): void => {
    const now = clock.now();
    for (const session of context.sessions) {
      if (session.idleMs(now) < timeoutMs) continue;
      session.shutdown("57P05", "terminating connection due to client_idle_timeout");
    }
    timer = clock.schedule(SWEEP_INTERVAL_MS, sweep);
  };
  if (timeoutMs > 0) timer = clock.schedule(SWEEP_INTERVAL_MS, sweep);
  return { stop: () => timer?.cancel() };
}

/** Sessions that hold nothing end at once, the others when they have released or at the deadline (clock milliseconds). */
export async function closeSessions(context: GatewayContext, deadline: number): Promise<void> {
  const { clock } = context.environment;
  const end = (isForced: boolean): void => {
    for (const session of context.sessions) {
      if (isForced || !session.isBusy) {
        session.shutdown("57P01", "terminating connection due to administrator command");
      }
    }
  };
  end(false);
  while (context.sessions.size > 0 && clock.now() < deadline) {
    await new Promise<void>((resolve) => {
      clock.schedule(DRAIN_INTERVAL_MS, resolve);
    });
    end(false);
  }
  end(true);
}
