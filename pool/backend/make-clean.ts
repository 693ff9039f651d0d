// Makes a connection fit for the next client after one that left it in any state, or says that it can't be.
import type { Clock } from "../time/clock.ts";
import { PoolError } from "../errors.ts";
import { Expect, Fate } from "../exchange/reply-plan.ts";
import { FAILING_BIND_FRAME, SYNC_FRAME, encodeCopyFail } from "../wire/frontend-messages.ts";
import { Status } from "../wire/message-types.ts";
import { type BackendConnection, UNKNOWN_PARAMETERS } from "./backend-connection.ts";

export interface CleaningOptions {
  readonly clock: Clock;
  /** A statement that still runs is cancelled; false lets it end, as after an orderly Terminate. */
  readonly cancelsRunning: boolean;
  /** Statements to run once it is idle, each as a Query of its own: the reset query, or none. */
  readonly reset: readonly string[];
  /** For each step; past it the connection is closed. */
  readonly stepTimeoutMs: number;
}

/** Of a copy's end, for the server's log. */
const REASON = "client disconnected";

/**
 * In order: end what runs, wait for its answers, ROLLBACK what is open, reset. Resolves with false, the connection closed, when any
 * step fails. The lease stays with the caller.
 */
export async function makeClean(
  backend: BackendConnection,
  options: CleaningOptions,
): Promise<boolean> {
  const { clock, stepTimeoutMs } = options;
  try {
    if (backend.plan.length > 0 || backend.isUnsynced || backend.hasCancelInFlight) {
      await drainAnswers(backend, options);
    }
    if (backend.status !== Status.IDLE) {
      await backend.run("ROLLBACK", clock.now() + stepTimeoutMs);
    }
    for (const statement of options.reset) {
      await backend.run(statement, clock.now() + stepTimeoutMs);
    }
  } catch (error) {
    // The reason was an answer to a statement of ours, or the loss itself: either way nobody may have this connection.
    if (!(error instanceof PoolError)) throw error;
    backend.destroy(error);
    return false;
  }
  // DISCARD ALL undid the last client's parameters and was noticed; what any other reset undid is not known.
  if (options.reset.length > 0 && backend.appliedParameters !== "") {
    backend.appliedParameters = UNKNOWN_PARAMETERS;
  }
  if (backend.isQuiet && !backend.isTainted) return true;
  backend.close();
  return false;
}

async function drainAnswers(backend: BackendConnection, options: CleaningOptions): Promise<void> {
  const { clock } = options;
  const deadline = clock.now() + options.stepTimeoutMs;
  await new Promise<void>((resolve, reject) => {
    const timer = clock.schedule(options.stepTimeoutMs, () => {
      backend.destroy(
        new PoolError("ERR_CANCELED", "a canceled statement did not end in time", {
          sqlState: "57014",
        }),
      );
    });
    const finish = (): void => {
      if (backend.plan.length > 0 || backend.hasCancelInFlight) return;
      timer.cancel();
      backend.detach();
      resolve();
    };
    const fail = (error: PoolError): void => {
      timer.cancel();
      reject(error);
    };
    backend.attach({
      forward: () => {},
      writable: () => {},
      settled: finish,
      copyIn: () => endCopy(backend),
      lost: fail,
    });
    backend.resume();
    const isRunning = backend.plan.length > 0;
    if (backend.isCopyIn) endCopy(backend);
    else if (backend.isUnsynced) failAndSync(backend);
    if (options.cancelsRunning && isRunning) {
      backend.cancel(deadline).catch((error: unknown) => {
        if (error instanceof PoolError) backend.destroy(error);
        else reject(error);
      });
    }
    finish();
  });
}

/** CopyFail makes the server leave copy-in mode with an error; in the extended protocol it then reads on to a Sync. */
function endCopy(backend: BackendConnection): void {
  const isExtended = backend.plan.headKind === Expect.EXECUTE;
  backend.send(encodeCopyFail(REASON));
  backend.isCopyIn = false;
  if (isExtended) sync(backend);
}

/**
 * What the client sent without a Sync of its own must not be committed by ours: it is made to fail first. The CopyFail is for a copy
 * that is about to begin, where a Bind would cost the connection; elsewhere the server ignores it.
 */
function failAndSync(backend: BackendConnection): void {
  backend.plan.expect(Expect.COPY_END);
  backend.send(encodeCopyFail(REASON));
  backend.plan.expect(Expect.BIND, Fate.HIDE_ALL);
  backend.send(FAILING_BIND_FRAME);
  sync(backend);
  backend.answerLocally();
}

function sync(backend: BackendConnection): void {
  backend.plan.expect(Expect.SYNC, Fate.HIDE_ALL);
  backend.hasUnsynced = false;
  backend.send(SYNC_FRAME);
}

/**
 * Splits a reset query into statements at its semicolons, for each is sent as a Query of its own: DISCARD ALL refuses to run in the
 * implicit transaction of a longer string. Semicolons inside quotes are not expected in a setting of the operator's.
 */
export function splitResetQuery(text: string): readonly string[] {
  return text
    .split(";")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}
