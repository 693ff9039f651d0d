// Runs a bundled Worker in workerd, the runtime of Cloudflare Workers, on 127.0.0.1. The same under Bun and Node.js.
import type { Readable } from "node:stream";
import { Miniflare } from "miniflare";

export interface WorkerOptions {
  /** The bundled module with the Worker as its default export. */
  readonly script: string;
  /** As in wrangler.jsonc. */
  readonly compatibilityDate: string;
  /** Variables and secrets, by name. */
  readonly bindings: Readonly<Record<string, string>>;
}

export interface RunningWorker {
  readonly url: URL;
  /** What workerd and the Worker have printed so far. */
  readonly log: () => string;
  /** Resolves once workerd has ended. */
  readonly stop: () => Promise<void>;
}

/**
 * The Worker is called by plain fetch() to `url`: Miniflare's own dispatchFetch() relies on an option of undici
 * that Bun ignores.
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  let printed = "";
  const worker = new Miniflare({
    modules: [{ type: "ESModule", path: "worker.js", contents: options.script }],
    compatibilityDate: options.compatibilityDate,
    bindings: { ...options.bindings },
    host: "127.0.0.1",
    // Otherwise request.cf is fetched from the internet.
    cf: false,
    handleRuntimeStdio: (...outputs: readonly Readable[]) => {
      for (const output of outputs) {
        output.setEncoding("utf8").on("data", (text: string) => {
          printed += text;
        });
      }
    },
  });
  try {
    return { url: await worker.ready, log: () => printed, stop: () => worker.dispose() };
  } catch (error) {
    await worker.dispose();
    throw error;
  }
}
