// Puts a client's startup parameters in force on the connection that is about to serve it.
import type { BackendConnection } from "../backend/backend-connection.ts";
import { PoolError } from "../errors.ts";
import type { SegmentWriter } from "./segment-writer.ts";
import { type ParameterSet, transition } from "./startup-parameters.ts";

/** The statement text still to be run, or undefined when they are in force; the connection counts as changed. */
export function claimParameters(
  backend: BackendConnection,
  parameters: ParameterSet,
): string | undefined {
  if (backend.appliedParameters === parameters.fingerprint) return undefined;
  const text = transition(backend.appliedNames, parameters);
  backend.appliedParameters = parameters.fingerprint;
  backend.appliedNames = [...parameters.entries.keys()];
  return text;
}

/**
 * In front of the client's first message, without a round trip. They were accepted when the client logged in: a server that refuses
 * them now is left, for it must not run the client's statements without them.
 */
export function writeParameters(
  backend: BackendConnection,
  writer: SegmentWriter,
  parameters: ParameterSet,
): void {
  const text = claimParameters(backend, parameters);
  if (text === undefined) return;
  writer.parameters(text, () => {
    backend.destroy(
      new PoolError("ERR_CONNECTION_LOST", "the server refused the session's parameters", {
        sqlState: "08006",
      }),
    );
  });
}
