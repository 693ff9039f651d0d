// Loads walgate.toml: text, values, schema, contradictions, references, in this order; the first mistake ends it.
import { dirname, resolve as absolutePath } from "node:path";
import { checkFile } from "./check-file.ts";
import { ConfigError, ConfigProblems } from "./config-error.ts";
import { crossCheck } from "./cross-check.ts";
import { parseToml } from "./parse-toml.ts";
import { type Environment, type ReadFile, readFailureText, References } from "./references.ts";
import { resolve, type Resolved } from "./resolve.ts";
import type { Config } from "./schema.ts";

export type LoadResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly error: ConfigError };

async function load(path: string, env: Environment, readFile: ReadFile): Promise<Resolved> {
  const problems = new ConfigProblems(path);
  const text = await readConfig(path, readFile, problems);
  const file = checkFile(parseToml(text, problems), problems);
  crossCheck(file, problems);
  const folder = dirname(absolutePath(path));
  return resolve(file, new References(folder, env, readFile, problems), problems);
}

async function readConfig(
  path: string,
  readFile: ReadFile,
  problems: ConfigProblems,
): Promise<string> {
  try {
    return await readFile(path);
  } catch (error) {
    throw problems.ofFile(readFailureText(error));
  }
}

/**
 * Reads and checks a configuration. Relative files in it belong to its folder.
 * Never rejects for a mistake of its writer: that is `ok: false` with one line as `error.message`.
 */
export async function loadConfig(
  path: string,
  env: Environment,
  readFile: ReadFile,
): Promise<LoadResult> {
  try {
    return { ok: true, ...(await load(path, env, readFile)) };
  } catch (error) {
    if (error instanceof ConfigError) return { ok: false, error };
    throw error;
  }
}
