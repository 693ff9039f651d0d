// Starts a handler that a user could write instead of walgate, as a process of its own.
import { join } from "node:path";
import { findFreePort } from "#gateway/embedded/free-port.ts";
import { type ChildServer, isListening, startChild } from "../child-process.ts";
import type { BenchDatabase } from "../bench-database.ts";

/** What such handlers check instead of a JWT: one secret, compared. */
const BEARER = "a-secret-of-the-bench";

export interface UserHandler extends ChildServer {
  readonly http: string;
  readonly token: string;
}

export async function startUserHandler(
  database: BenchDatabase,
  kind: "pg" | "bun-sql",
  poolSize: number,
): Promise<UserHandler> {
  const port = await findFreePort(undefined, new Set());
  const child = await startChild({
    words: [process.execPath, join(import.meta.dir, `${kind}-handler.ts`)],
    env: {
      BENCH_PORT: String(port),
      BENCH_DATABASE: database.cluster.primary.url("app"),
      BENCH_POOL_SIZE: String(poolSize),
      BENCH_BEARER: BEARER,
    },
    isReady: () => isListening(port),
  });
  return { ...child, http: `http://127.0.0.1:${port}`, token: BEARER };
}
