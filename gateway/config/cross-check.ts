// Checks what one key says against what another says: names that must exist, choices that exclude each other.
import { isDeepStrictEqual } from "node:util";
import { type ConfigProblems, formatKeyPath, type KeyPath } from "./config-error.ts";
import { nearestKey } from "./nearest-key.ts";
import type { AuthRuleConfig, ConfigFile, ServerConfig } from "./schema.ts";
import { formatAddress } from "./values.ts";

type DatabaseFile = ConfigFile["databases"][string];
type ProfileFile = ConfigFile["profiles"][string];
type JwtFile = ConfigFile["auth"]["jwt"][number];

/** Index of the first entry that equals an earlier one, and of that earlier one. */
function firstRepeated(
  values: readonly string[],
): readonly [index: number, earlier: number] | undefined {
  const seen = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    const earlier = seen.get(value);
    if (earlier !== undefined) return [index, earlier];
    seen.set(value, index);
  }
  return undefined;
}

/** Which of the keys an entry has. */
function givenKeys<T extends object>(entry: T, keys: readonly (keyof T & string)[]): string[] {
  return keys.filter((key) => entry[key] !== undefined);
}

class CrossCheck {
  readonly #file: ConfigFile;
  readonly #problems: ConfigProblems;

  constructor(file: ConfigFile, problems: ConfigProblems) {
    this.#file = file;
    this.#problems = problems;
  }

  run(): void {
    const { gateway, tokens, databases, profiles, auth } = this.#file;
    if (gateway.http === undefined && gateway.postgres === undefined) {
      throw this.#problems.ofKey(["gateway"], "needs http, postgres or both");
    }
    if (Object.keys(databases).length === 0) {
      throw this.#problems.ofFile("needs a section [databases.NAME]");
    }
    if (Object.keys(profiles).length === 0) {
      throw this.#problems.ofFile("needs a section [profiles.NAME]");
    }
    for (const [index, key] of tokens.keys.entries()) {
      this.#exactlyOne(["tokens", "keys", index], key, ["secret_env", "secret_file"]);
    }
    for (const [name, database] of Object.entries(databases)) this.#checkDatabase(name, database);
    for (const [name, profile] of Object.entries(profiles)) this.#checkProfile(name, profile);
    for (const [index, jwt] of auth.jwt.entries()) this.#checkJwt(["auth", "jwt", index], jwt);
    this.#unique(
      ["auth", "jwt"],
      "issuer",
      auth.jwt.map(({ issuer }) => issuer),
    );
    for (const [index, rule] of auth.rules.entries()) this.#checkRule(index, rule);
    for (const [index, user] of auth.users.entries()) {
      this.#exactlyOne(["auth", "users", index], user, ["secret_env", "secret_file", "secret"]);
    }
    this.#unique(
      ["auth", "users"],
      "name",
      auth.users.map(({ name }) => name),
    );
    for (const [name, database] of Object.entries(databases)) this.#checkMonitor(name, database);
  }

  #checkDatabase(name: string, database: DatabaseFile): void {
    const path: KeyPath = ["databases", name];
    const servers = namedServers(database);
    const serversPath = [...path, "servers"];
    this.#unique(
      serversPath,
      "name",
      servers.map((server) => server.name),
    );
    this.#unique(
      serversPath,
      "address",
      servers.map(({ address }) => formatAddress(address)),
    );
    this.#atMostOne(path, database, ["monitor_password_env", "monitor_password_file"]);
    const [passwordKey] = givenKeys(database, ["monitor_password_env", "monitor_password_file"]);
    if (passwordKey !== undefined && database.monitor_user === undefined) {
      throw this.#problems.ofKey([...path, passwordKey], "needs monitor_user");
    }
    if (database.sslrootcert !== undefined && !database.sslmode.startsWith("verify-")) {
      throw this.#problems.ofKey(
        [...path, "sslrootcert"],
        'needs sslmode "verify-ca" or "verify-full"',
      );
    }
  }

  /** Last, since profiles that are wrong in themselves may be why it fails. */
  #checkMonitor(name: string, database: DatabaseFile): void {
    const isWatchable =
      database.monitor_user !== undefined ||
      Object.values(this.#file.profiles).some(
        (profile) => profile.database === name && profile.sql === "trusted",
      );
    if (isWatchable) return;
    throw this.#problems.ofKey(
      ["databases", name, "monitor_user"],
      'missing, and no profile of this database has sql = "trusted"',
    );
  }

  #checkProfile(name: string, profile: ProfileFile): void {
    const path: KeyPath = ["profiles", name];
    this.#exists([...path, "database"], profile.database, "databases");
    this.#atMostOne(path, profile, ["password_env", "password_file", "password"]);
  }

  #checkJwt(path: KeyPath, jwt: JwtFile): void {
    this.#exactlyOne(path, jwt, ["jwks_url", "jwks_file", "secret_env", "secret_file"]);
    const isSecret = jwt.secret_env !== undefined || jwt.secret_file !== undefined;
    const unfit = jwt.algorithms?.findIndex((algorithm) => (algorithm === "HS256") !== isSecret);
    if (unfit === undefined || unfit < 0) return;
    throw this.#problems.ofKey(
      [...path, "algorithms", unfit],
      isSecret ? "a secret is for HS256 only" : "HS256 needs secret_env or secret_file",
    );
  }

  #checkRule(index: number, rule: AuthRuleConfig): void {
    const path: KeyPath = ["auth", "rules", index];
    if (rule.database !== undefined) {
      this.#exists([...path, "database"], rule.database, "databases");
    }
    this.#checkRuleResult(path, rule);
    for (const key of givenKeys(rule, ["issuer", "claims"])) {
      if (rule.method === "jwt") continue;
      throw this.#problems.ofKey([...path, key], 'only for method "jwt"');
    }
    const issuers = this.#file.auth.jwt.map(({ issuer }) => issuer);
    if (rule.issuer !== undefined && !issuers.includes(rule.issuer)) {
      throw this.#problems.ofKey([...path, "issuer"], "no [[auth.jwt]] has this issuer");
    }
    if (rule.method === "jwt" && issuers.length === 0) {
      throw this.#problems.ofKey([...path, "method"], '"jwt" needs a section [[auth.jwt]]');
    }
    const { tenant: _tenant, profile: _profile, ...condition } = rule;
    for (const [earlier, other] of this.#file.auth.rules.slice(0, index).entries()) {
      const { tenant: _otherTenant, profile: _otherProfile, ...otherCondition } = other;
      if (!isDeepStrictEqual(condition, otherCondition)) continue;
      throw this.#problems.ofKey(
        path,
        `never matches, auth.rules[${earlier}] has the same conditions`,
      );
    }
  }

  #checkRuleResult(path: KeyPath, rule: AuthRuleConfig): void {
    if (rule.method === "reject") {
      for (const key of givenKeys(rule, ["profile", "tenant"])) {
        throw this.#problems.ofKey([...path, key], 'not for method "reject"');
      }
      return;
    }
    if (rule.profile === undefined) throw this.#problems.ofKey([...path, "profile"], "missing");
    this.#exists([...path, "profile"], rule.profile, "profiles");
    if (rule.tenant === "claim:" || (rule.method !== "jwt" && rule.tenant?.startsWith("claim:"))) {
      throw this.#problems.ofKey(
        [...path, "tenant"],
        rule.method === "jwt" ? "names no claim" : 'a claim is only for method "jwt"',
      );
    }
    const database = this.#file.profiles[rule.profile]?.database;
    if (rule.database !== undefined && rule.database !== database) {
      throw this.#problems.ofKey([...path, "profile"], "is a profile of another database");
    }
  }

  #exists(path: KeyPath, name: string, section: "databases" | "profiles"): void {
    const known = this.#file[section];
    if (Object.hasOwn(known, name)) return;
    const nearest = nearestKey(name, Object.keys(known));
    const hint =
      nearest === undefined ? "" : `, the nearest is ${formatKeyPath([section, nearest])}`;
    throw this.#problems.ofKey(path, `names no section of [${section}]${hint}`);
  }

  #unique(path: KeyPath, key: string, values: readonly string[]): void {
    const repeated = firstRepeated(values);
    if (repeated === undefined) return;
    const [index, earlier] = repeated;
    throw this.#problems.ofKey([...path, index], `has the same ${key} as entry ${earlier}`);
  }

  #atMostOne<T extends object>(path: KeyPath, entry: T, keys: readonly (keyof T & string)[]): void {
    const given = givenKeys(entry, keys);
    if (given.length <= 1) return;
    throw this.#problems.ofKey(path, `has ${given.join(" and ")}, only one may be given`);
  }

  #exactlyOne<T extends object>(
    path: KeyPath,
    entry: T,
    keys: readonly (keyof T & string)[],
  ): void {
    this.#atMostOne(path, entry, keys);
    if (givenKeys(entry, keys).length === 1) return;
    throw this.#problems.ofKey(path, `needs one of ${keys.join(", ")}`);
  }
}

/** Servers without a name are s1, s2 and so on, by their place in the list. */
export function namedServers({ servers }: Pick<DatabaseFile, "servers">): readonly ServerConfig[] {
  return servers.map((server, index) => {
    const name = `s${index + 1}`;
    if (!("address" in server)) return { name, address: server, weight: 1 };
    return { name: server.name ?? name, address: server.address, weight: server.weight };
  });
}

/** @throws ConfigError for the first contradiction. */
export function crossCheck(file: ConfigFile, problems: ConfigProblems): void {
  new CrossCheck(file, problems).run();
}
