// The end of a lease whose client may have left anything behind: clean the connection or close it, then give it back.
import type { BackendConnection } from "../backend/backend-connection.ts";
import { makeClean, splitResetQuery } from "../backend/make-clean.ts";
import { PoolError } from "../errors.ts";
import type { RelayEnvironment } from "./relay-environment.ts";

export interface Departure {
  /** A message to the server is incomplete: only closing helps. */
  readonly isMidMessage: boolean;
  /** False after an orderly Terminate: what was sent before it is carried out. */
  readonly cancelsRunning: boolean;
  /** State may have been left on the server session. */
  readonly needsReset: boolean;
}

/** Ends the lease of a connection that is quiet and holds nothing of its client's. */
export function giveBack({ pools }: RelayEnvironment, backend: BackendConnection): void {
  if (backend.isTainted) pools.discard(backend);
  else pools.release(backend);
}

export function depart(
  environment: RelayEnvironment,
  backend: BackendConnection,
  departure: Departure,
): void {
  const { pools, clock } = environment;
  backend.detach();
  if (departure.isMidMessage) {
    backend.destroy(
      new PoolError("ERR_CONNECTION_LOST", "the client left inside a message", {
        sqlState: "08006",
      }),
    );
  }
  if (!backend.isOpen) {
    pools.discard(backend);
    return;
  }
  if (!departure.needsReset && backend.isQuiet) {
    giveBack(environment, backend);
    return;
  }
  const { profile } = backend;
  const reset =
    profile.poolMode === "session" ? splitResetQuery(profile.serverResetQuery) : ["DISCARD ALL"];
  makeClean(backend, {
    clock,
    cancelsRunning: departure.cancelsRunning,
    reset: departure.needsReset ? reset : [],
    stepTimeoutMs: profile.cancelWaitTimeoutMs,
  }).then(
    (isClean) => (isClean ? pools.release(backend) : pools.discard(backend)),
    environment.reportBug,
  );
}
