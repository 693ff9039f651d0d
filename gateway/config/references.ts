// Follows the references of the configuration: environment variables and files. The content is never part of an error.
import { isAbsolute, join } from "node:path";
import { Secret } from "#auth/secret.ts";
import type { ConfigProblems, KeyPath } from "./config-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a whole text file; rejects with an error whose `code` is the system's (ENOENT …). */
export type ReadFile = (path: string) => Promise<string>;

/** Names that are surely names and not a secret in the wrong key: capital words joined by underscores. */
const PLAIN_VARIABLE_NAME = /^[A-Z][A-Z0-9]{0,31}(?:_[A-Z0-9]{1,31}){1,8}$/;

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EACCES: "may not be read by this user",
  EPERM: "may not be read by this user",
  EISDIR: "is a folder",
  EFBIG: "is too long",
  EILSEQ: "is not UTF-8 text",
};

/** What a failed read means, without the path. */
export function readFailureText(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return READ_FAILURES[code] ?? `cannot be read${/^[A-Z]+$/.test(code) ? ` (${code})` : ""}`;
}

export interface SecretSources {
  readonly env?: string | undefined;
  readonly file?: string | undefined;
  readonly literal?: Secret | undefined;
}

export class References {
  readonly #folder: string;
  readonly #env: Environment;
  readonly #readFile: ReadFile;
  readonly #problems: ConfigProblems;

  constructor(folder: string, env: Environment, readFile: ReadFile, problems: ConfigProblems) {
    this.#folder = folder;
    this.#env = env;
    this.#readFile = readFile;
    this.#problems = problems;
  }

  /**
   * The secret of `${key}_env`, `${key}_file` or `key` below `path`; undefined when none is given.
   *
   * @throws ConfigError when it is not there, is empty, has a NUL or fewer than `bytesMin` bytes.
   */
  async secret(
    path: KeyPath,
    key: string,
    { env, file, literal }: SecretSources,
    bytesMin = 1,
  ): Promise<Secret | undefined> {
    if (literal !== undefined) return this.#checked([...path, key], literal.reveal(), bytesMin);
    if (env !== undefined) {
      const keyPath = [...path, `${key}_env`];
      return this.#checked(keyPath, this.#variable(keyPath, env), bytesMin);
    }
    if (file === undefined) return undefined;
    const keyPath = [...path, `${key}_file`];
    const text = await this.text(keyPath, file);
    // Editors and `echo` end a file with a line feed that is not part of the secret.
    return this.#checked(keyPath, text.replace(/\r?\n$/, ""), bytesMin);
  }

  /** @throws ConfigError when the file cannot be read. */
  async text(path: KeyPath, file: string): Promise<string> {
    try {
      return await this.#readFile(isAbsolute(file) ? file : join(this.#folder, file));
    } catch (error) {
      throw this.#problems.ofKey(path, `the file ${readFailureText(error)}`);
    }
  }

  #variable(path: KeyPath, name: string): string {
    const value = this.#env[name];
    if (value !== undefined) return value;
    const shown = PLAIN_VARIABLE_NAME.test(name) ? ` ${name}` : "";
    throw this.#problems.ofKey(path, `the environment variable${shown} is not set`);
  }

  #checked(path: KeyPath, text: string, bytesMin: number): Secret {
    if (text === "") throw this.#problems.ofKey(path, "the secret is empty");
    if (text.includes("\0")) throw this.#problems.ofKey(path, "the secret has a NUL");
    const bytes = Buffer.byteLength(text);
    if (bytes < bytesMin) {
      throw this.#problems.ofKey(
        path,
        `the secret has ${bytes} bytes, must have at least ${bytesMin}`,
      );
    }
    return new Secret(text);
  }
}
