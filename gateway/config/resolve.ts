// Makes the configuration from a checked file: follows its references and replaces them by what they lead to.
import { randomBytes } from "node:crypto";
import { parseUserFile, UserList } from "#auth/passwords/user-list.ts";
import { Secret } from "#auth/secret.ts";
import { parseCertificates, privateKeyProblem } from "./certificates.ts";
import type { ConfigProblems, KeyPath } from "./config-error.ts";
import { namedServers } from "./cross-check.ts";
import type { References } from "./references.ts";
import type {
  Config,
  ConfigFile,
  DatabaseConfig,
  GatewayConfig,
  JwtConfig,
  JwtKeys,
  ProfileConfig,
  UserConfig,
} from "./schema.ts";

/** RFC 7518, "HMAC with SHA-2 Functions": a key has at least the size of the hash. Tokens are signed alike. */
export const HMAC_SECRET_BYTES_MIN = 32;

export interface Resolved {
  readonly config: Config;
  /** One line each. */
  readonly warnings: readonly string[];
}

class Resolver {
  readonly #file: ConfigFile;
  readonly #references: References;
  readonly #problems: ConfigProblems;
  readonly #warnings: string[] = [];

  constructor(file: ConfigFile, references: References, problems: ConfigProblems) {
    this.#file = file;
    this.#references = references;
    this.#problems = problems;
  }

  async run(): Promise<Resolved> {
    const { http, pool, auth } = this.#file;
    const config: Config = {
      gateway: await this.#gateway(),
      http,
      tokens: await this.#tokens(),
      pool,
      databases: await mapValues(this.#file.databases, (name, value) =>
        this.#database(name, value),
      ),
      profiles: await mapValues(this.#file.profiles, (name, value) => this.#profile(name, value)),
      auth: {
        jwt: await this.#jwt(),
        rules: auth.rules,
        users: await this.#users(),
      },
    };
    if (auth.rules.length === 0) {
      this.#warnings.push(
        this.#problems.ofKey(["auth", "rules"], "empty, so every client is refused").message,
      );
    }
    return { config, warnings: this.#warnings };
  }

  async #gateway(): Promise<GatewayConfig> {
    const { tls, ...rest } = this.#file.gateway;
    if (tls === undefined) return rest;
    const path: KeyPath = ["gateway", "tls"];
    const certificatePath = [...path, "cert_file"];
    const certificate = await this.#references.text(certificatePath, tls.cert_file);
    const [first] = this.#certificates(certificatePath, certificate);
    const key = await this.#references.secret(path, "key", { file: tls.key_file });
    const problem =
      key === undefined || first === undefined ? "missing" : privateKeyProblem(key, first);
    if (key === undefined || problem !== undefined) {
      throw this.#problems.ofKey([...path, "key_file"], problem ?? "missing");
    }
    return { ...rest, tls: { certificate, private_key: key } };
  }

  #certificates(path: KeyPath, text: string) {
    const certificates = parseCertificates(text);
    if (certificates !== undefined) return certificates;
    throw this.#problems.ofKey(path, "the file has no certificate in PEM, or one that is broken");
  }

  async #tokens(): Promise<Config["tokens"]> {
    const { keys, max_wait } = this.#file.tokens;
    const secrets: Secret[] = [];
    for (const [index, { secret_env: env, secret_file: file }] of keys.entries()) {
      const path: KeyPath = ["tokens", "keys", index];
      secrets.push(await this.#requiredSecret(path, "secret", { env, file }));
    }
    const [first, ...others] = secrets;
    if (first !== undefined) return { keys: [first, ...others], max_wait };
    this.#warnings.push(
      this.#problems.ofKey(
        ["tokens", "keys"],
        "empty, so tokens are signed with a random key and end with this process",
      ).message,
    );
    return {
      keys: [new Secret(randomBytes(HMAC_SECRET_BYTES_MIN).toString("base64url"))],
      max_wait,
    };
  }

  async #database(name: string, file: ConfigFile["databases"][string]): Promise<DatabaseConfig> {
    const { monitor_password_env: env, monitor_password_file: passwordFile, ...rest } = file;
    const { sslrootcert: rootFile, ...settings } = rest;
    const path: KeyPath = ["databases", name];
    const password = await this.#references.secret(path, "monitor_password", {
      env,
      file: passwordFile,
    });
    const rootPath = [...path, "sslrootcert"];
    const root =
      rootFile === undefined ? undefined : await this.#references.text(rootPath, rootFile);
    if (root !== undefined) this.#certificates(rootPath, root);
    return {
      ...settings,
      dbname: file.dbname ?? name,
      servers: namedServers(file),
      ...(password === undefined ? {} : { monitor_password: password }),
      ...(root === undefined ? {} : { sslrootcert: root }),
    };
  }

  async #profile(name: string, file: ConfigFile["profiles"][string]): Promise<ProfileConfig> {
    const { password_env: env, password_file: passwordFile, password: literal, ...rest } = file;
    const password = await this.#references.secret(["profiles", name], "password", {
      env,
      file: passwordFile,
      literal,
    });
    return { ...rest, ...(password === undefined ? {} : { password }) };
  }

  async #jwt(): Promise<readonly JwtConfig[]> {
    const issuers: JwtConfig[] = [];
    for (const [
      index,
      { issuer, audience, algorithms, ...source },
    ] of this.#file.auth.jwt.entries()) {
      issuers.push({
        issuer,
        audience: typeof audience === "string" ? [audience] : audience,
        keys: await this.#jwtKeys(["auth", "jwt", index], source),
        ...(algorithms === undefined ? {} : { algorithms }),
      });
    }
    return issuers;
  }

  async #jwtKeys(
    path: KeyPath,
    {
      jwks_url,
      jwks_file,
      secret_env: env,
      secret_file: file,
    }: Pick<
      ConfigFile["auth"]["jwt"][number],
      "jwks_url" | "jwks_file" | "secret_env" | "secret_file"
    >,
  ): Promise<JwtKeys> {
    if (jwks_url !== undefined) return { kind: "jwks_url", url: jwks_url };
    if (jwks_file === undefined) {
      return { kind: "secret", secret: await this.#requiredSecret(path, "secret", { env, file }) };
    }
    const filePath = [...path, "jwks_file"];
    const jwks = parseJson(await this.#references.text(filePath, jwks_file));
    if (isKeySet(jwks)) return { kind: "jwks", jwks };
    throw this.#problems.ofKey(filePath, 'the file is not a JSON object with a list "keys"');
  }

  async #requiredSecret(
    path: KeyPath,
    key: string,
    sources: { readonly env: string | undefined; readonly file: string | undefined },
  ): Promise<Secret> {
    const secret = await this.#references.secret(path, key, sources, HMAC_SECRET_BYTES_MIN);
    if (secret === undefined) throw this.#problems.ofKey(path, "needs a secret");
    return secret;
  }

  async #users(): Promise<readonly UserConfig[]> {
    const users: UserConfig[] = [];
    const { users: listed, auth_file: file } = this.#file.auth;
    for (const [index, { name, secret_env, secret_file, secret: literal }] of listed.entries()) {
      const path: KeyPath = ["auth", "users", index];
      const sources = { env: secret_env, file: secret_file, literal };
      const secret = await this.#references.secret(path, "secret", sources);
      if (secret === undefined) throw this.#problems.ofKey(path, "needs a secret");
      users.push({ name, secret });
      this.#checkUsers(path, users.slice(-1));
    }
    if (file === undefined) return users;
    const path: KeyPath = ["auth", "auth_file"];
    const parsed = parseUserFile(await this.#references.text(path, file));
    if (!parsed.ok) {
      throw this.#problems.ofKey(path, `line ${parsed.line}: ${parsed.problem}`);
    }
    users.push(...parsed.entries);
    this.#checkUsers(path, users);
    return users;
  }

  #checkUsers(path: KeyPath, users: readonly UserConfig[]): void {
    const result = UserList.create(users, randomBytes);
    if (!result.ok) throw this.#problems.ofKey(path, result.problem);
  }
}

/** In order, so that the first mistake of the file is the one that is reported. */
async function mapValues<T, U>(
  values: Readonly<Record<string, T>>,
  map: (name: string, value: T) => Promise<U>,
): Promise<Readonly<Record<string, U>>> {
  const entries: [string, U][] = [];
  for (const [name, value] of Object.entries(values)) entries.push([name, await map(name, value)]);
  return Object.fromEntries(entries);
}

/** Undefined when it is not JSON: the engine's own message would quote the text. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isKeySet(value: unknown): boolean {
  return (
    typeof value === "object" && value !== null && "keys" in value && Array.isArray(value.keys)
  );
}

/** @throws ConfigError for the first reference that leads nowhere or to something unfit. */
export function resolve(
  file: ConfigFile,
  references: References,
  problems: ConfigProblems,
): Promise<Resolved> {
  return new Resolver(file, references, problems).run();
}
