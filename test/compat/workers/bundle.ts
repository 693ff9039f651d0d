// Bundles the example Worker for workerd, and the steps of its test for Node.js.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const WRANGLER_COMPAT = join(import.meta.dir, "../../../wrangler-compat");

export interface BundledWorker {
  readonly script: string;
  readonly compatibilityDate: string;
}

/** The Worker that wrangler.jsonc names, and the date of behaviour that it asks for. */
export async function bundleWorker(): Promise<BundledWorker> {
  const config: unknown = Bun.JSONC.parse(
    await Bun.file(join(WRANGLER_COMPAT, "wrangler.jsonc")).text(),
  );
  const script = await bundle({
    entrypoints: [join(WRANGLER_COMPAT, textOf(config, "main"))],
    target: "browser",
    conditions: ["workerd", "worker", "browser"],
  });
  return { script, compatibilityDate: textOf(config, "compatibility_date") };
}

/** One module that Node.js runs from any folder. */
export function bundleForNode(entrypoint: string): Promise<string> {
  // It stays outside, since it finds workerd beside itself; and it is a dependency of wrangler-compat only.
  const miniflare = pathToFileURL(Bun.resolveSync("miniflare", WRANGLER_COMPAT)).href;
  return bundle({
    entrypoints: [entrypoint],
    target: "node",
    plugins: [
      {
        name: "miniflare by its address",
        setup: (build) => {
          build.onResolve({ filter: /^miniflare$/ }, () => ({ path: miniflare, external: true }));
        },
      },
    ],
  });
}

async function bundle(config: Omit<Bun.BuildConfig, "format" | "throw">): Promise<string> {
  const { outputs } = await Bun.build({ ...config, format: "esm", throw: true });
  const [output] = outputs;
  if (output === undefined) throw new Error("the bundle is empty");
  return output.text();
}

function textOf(config: unknown, key: string): string {
  const value: unknown = Reflect.get(Object(config), key);
  if (typeof value !== "string") throw new Error(`wrangler.jsonc has no text for ${key}`);
  return value;
}
