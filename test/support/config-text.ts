// Loads configurations from text, with files and environment that exist only in memory.
import { loadConfig, type LoadResult } from "#gateway/config/load.ts";

/** The smallest configuration that loads; sections can be appended to it. */
export const MINIMAL_CONFIG = `
[gateway]
postgres = "127.0.0.1:6432"

[databases.app]
servers = ["10.0.0.1:5432"]

[profiles.app]
database = "app"
user = "app"
sql = "trusted"
`;

export interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  /** By path relative to the configuration's folder, or absolute. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A text that must not load, and the line that says why (without the file's name). */
export type Mistake = readonly [
  title: string,
  text: string,
  problem: string,
  surroundings?: Surroundings,
];

/** Text after the minimal configuration, whose last section is [profiles.app]. */
export function appended(text: string): string {
  return `${MINIMAL_CONFIG}${text}\n`;
}

/** The minimal configuration with other keys in [databases.app]. */
export function databaseWith(text: string): string {
  return MINIMAL_CONFIG.replace('servers = ["10.0.0.1:5432"]', text);
}

/** The minimal configuration with more keys in [gateway]. */
export function gatewayWith(text: string): string {
  return MINIMAL_CONFIG.replace("[gateway]", `[gateway]\n${text}`);
}

class MissingFileError extends Error {
  readonly code = "ENOENT";
}

/** Loads the text as the file /etc/walgate/walgate.toml, which messages call by this path. */
export function loadText(
  text: string,
  { env = {}, files = {} }: Surroundings = {},
): Promise<LoadResult> {
  const contents = new Map([["/etc/walgate/walgate.toml", text]]);
  for (const [name, content] of Object.entries(files)) {
    contents.set(name.startsWith("/") ? name : `/etc/walgate/${name}`, content);
  }
  const readFile = (path: string): Promise<string> => {
    const content = contents.get(path);
    return content === undefined
      ? Promise.reject(new MissingFileError(path))
      : Promise.resolve(content);
  };
  return loadConfig("/etc/walgate/walgate.toml", env, readFile);
}

/** The line of a load that must fail, without the file's name. */
export async function problemOf(text: string, surroundings: Surroundings = {}): Promise<string> {
  const result = await loadText(text, surroundings);
  if (result.ok) return "no problem";
  return result.error.message.replace(/^\/etc\/walgate\/walgate\.toml: /, "");
}
