// A mistake in the configuration, as one line for the person who made it.

export type KeyPath = readonly (string | number)[];

/** As TOML writes it, with the place in an array in brackets: auth.rules[0].profile, databases."my db". */
export function formatKeyPath(path: KeyPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += `${text === "" ? "" : "."}${formatKey(part)}`;
  }
  return text;
}

function formatKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}

/** `message` is one line that names file, key and mistake, but no value of the file or the environment. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "ERR_CONFIG";
  /** config_file_error. */
  readonly sqlState = "F0000";
}

/** Makes the errors of one file. */
export class ConfigProblems {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  ofFile(text: string): ConfigError {
    return new ConfigError(`${this.#file}: ${text}`);
  }

  ofKey(path: KeyPath, text: string): ConfigError {
    return new ConfigError(`${this.#file}: ${formatKeyPath(path)}: ${text}`);
  }
}
