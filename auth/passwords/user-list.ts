// The users that may log in with a password, each with a SCRAM verifier. No file access: text in.
import { deriveScramVerifier, parseScramVerifier, SCRAM_SALT_BYTES } from "../scram/verifier.ts";
import type { ScramVerifier } from "../scram/verifier.ts";
import { SCRAM_SHAPE_DEFAULT } from "../scram/mock-verifier.ts";
import type { ScramVerifierShape } from "../scram/mock-verifier.ts";
import type { RandomBytes } from "../scram/messages.ts";
import { Secret } from "../secret.ts";

/** A user as configured: the secret is a SCRAM verifier or a plain password. */
export interface UserEntry {
  readonly name: string;
  readonly secret: Secret;
}

export type UserListResult =
  | { readonly ok: true; readonly users: UserList }
  | { readonly ok: false; readonly problem: string };

export type UserFileResult =
  | { readonly ok: true; readonly entries: readonly UserEntry[] }
  | { readonly ok: false; readonly line: number; readonly problem: string };

type StoredUser =
  | { readonly kind: "verifier"; readonly verifier: ScramVerifier }
  | { readonly kind: "password"; readonly password: Secret; derived?: Promise<ScramVerifier> };

/** Looks users up by name. Immutable but for verifiers that are derived on first use. */
export class UserList {
  readonly #users: ReadonlyMap<string, StoredUser>;
  readonly #randomBytes: RandomBytes;
  /** What the users' verifiers look like from outside; mock verifiers copy it. */
  readonly shapes: readonly ScramVerifierShape[];

  private constructor(users: ReadonlyMap<string, StoredUser>, randomBytes: RandomBytes) {
    this.#users = users;
    this.#randomBytes = randomBytes;
    this.shapes = [...users.values()].map((user) =>
      user.kind === "verifier"
        ? { iterations: user.verifier.iterations, saltBytes: user.verifier.salt.byteLength }
        : SCRAM_SHAPE_DEFAULT,
    );
  }

  /** Checks the entries. The problem names the user, never the secret. */
  static create(entries: readonly UserEntry[], randomBytes: RandomBytes): UserListResult {
    const users = new Map<string, StoredUser>();
    for (const entry of entries) {
      if (entry.name === "") return { ok: false, problem: "a user has an empty name" };
      if (users.has(entry.name)) {
        return { ok: false, problem: `user "${entry.name}" is listed twice` };
      }
      const stored = readSecret(entry.secret);
      if (typeof stored === "string") {
        return { ok: false, problem: `user "${entry.name}": ${stored}` };
      }
      users.set(entry.name, stored);
    }
    return { ok: true, users: new UserList(users, randomBytes) };
  }

  has(name: string): boolean {
    return this.#users.has(name);
  }

  /** The user's verifier, or undefined for an unknown user. Costs one PBKDF2 per plain password. */
  async verifier(name: string): Promise<ScramVerifier | undefined> {
    const user = this.#users.get(name);
    if (user === undefined) return undefined;
    if (user.kind === "verifier") return user.verifier;
    // One derivation for all who ask, and one salt: clients cache keys by salt.
    user.derived ??= deriveScramVerifier(user.password, this.#randomBytes(SCRAM_SALT_BYTES));
    return user.derived;
  }
}

/**
 * Reads PgBouncer's auth_file: `"user" "secret"` per line, a quote inside is doubled, a line that
 * starts with `;` is a comment, and whatever follows the secret is ignored.
 */
export function parseUserFile(text: string): UserFileResult {
  const entries: UserEntry[] = [];
  const names = new Set<string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const content = line.trim();
    if (content === "" || content.startsWith(";")) continue;
    const refuse = (problem: string): UserFileResult => ({ ok: false, line: index + 1, problem });

    const match = /^"((?:[^"]|"")*)"\s+"((?:[^"]|"")*)"(?:\s|$)/.exec(content);
    const [, nameText, secretText] = match ?? [];
    if (nameText === undefined || secretText === undefined) {
      return refuse('expected "user" "secret", each in double quotes');
    }
    const name = unquote(nameText);
    const secret = new Secret(unquote(secretText));
    if (name === "") return refuse("the user name is empty");
    if (names.has(name)) return refuse(`user "${name}" is listed twice`);
    const stored = readSecret(secret);
    if (typeof stored === "string") return refuse(stored);
    names.add(name);
    entries.push({ name, secret });
  }
  return { ok: true, entries };
}

function unquote(text: string): string {
  return text.replaceAll('""', '"');
}

/** A text is the problem; it does not quote the secret. */
function readSecret(secret: Secret): StoredUser | string {
  const text = secret.reveal();
  if (text === "") return "the secret is empty";
  if (/^md5[0-9a-f]{32}$/.test(text)) {
    return "an MD5 hash cannot be checked here; store a SCRAM-SHA-256 verifier instead";
  }
  if (!text.startsWith("SCRAM-SHA-256$")) return { kind: "password", password: secret };
  const verifier = parseScramVerifier(text);
  return verifier === undefined
    ? "the secret starts like a SCRAM-SHA-256 verifier but is not a valid one"
    : { kind: "verifier", verifier };
}
