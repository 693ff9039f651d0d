// Builds sdk/dist, which `@walgate/sdk` resolves to.
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "..");
const SOURCE = join(ROOT, "sdk/src");
const RESULT = join(ROOT, "sdk/dist/index.js");

/** False when the compiler reported errors, which it has printed. */
export async function buildSdk(): Promise<boolean> {
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  const child = Bun.spawn(
    [process.execPath, compiler, "-p", join(ROOT, "sdk/tsconfig.build.json")],
    { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] },
  );
  return (await child.exited) === 0;
}

/** Spares the seconds of a build when nothing has changed since the last one. */
export async function buildSdkIfStale(): Promise<boolean> {
  const built = await modifiedAt(RESULT);
  const names = await readdir(SOURCE);
  const times = await Promise.all(names.map((name) => modifiedAt(join(SOURCE, name))));
  if (built > Math.max(...times)) return true;
  return buildSdk();
}

/** Milliseconds since 1970; 0 for a file that is not there. */
async function modifiedAt(path: string): Promise<number> {
  const file = await stat(path).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  return file?.mtimeMs ?? 0;
}
