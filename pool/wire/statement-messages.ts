// Writes the messages that run one statement with text parameters by the extended protocol, for callers who have no wire bytes of their own.
import { serialize } from "pg-protocol/dist/serializer.js";
import { concatBytes } from "./message-types.ts";

/** Bind counts its parameters in 16 bits ("Message Formats": Bind). */
export const PARAMETERS_MAX = 65_535;

/**
 * Parse, Bind, Describe and Execute of the unnamed statement and portal, without a Sync. No parameter type is declared, so PostgreSQL
 * infers each; results come as text. `text` and `params` hold no NUL, and there are at most PARAMETERS_MAX of them.
 */
export function encodeStatement(text: string, params: readonly (string | null)[]): Uint8Array {
  return concatBytes([
    serialize.parse({ text }),
    serialize.bind({ values: [...params] }),
    serialize.describe({ type: "P" }),
    serialize.execute(),
  ]);
}
