// What a StartupMessage asks for, checked: user, database, and the settings of the session. Pure.
import type { StartupMessage } from "#pool/wire/startup-packet.ts";
import { type ParameterSet, parameterSet, readOptions } from "#pool/session/startup-parameters.ts";

export interface StartupRequest {
  readonly user: string;
  readonly database: string;
  readonly parameters: ParameterSet;
  /** Protocol options (`_pq_.`) that we don't know. */
  readonly unknownOptions: readonly string[];
}

export type StartupResult =
  | { readonly ok: true; readonly request: StartupRequest }
  | { readonly ok: false; readonly sqlState: string; readonly message: string };

export function readStartupRequest(message: StartupMessage): StartupResult {
  const { parameters } = message;
  const user = parameters.get("user") ?? "";
  if (user === "") {
    return refuse("28000", "no PostgreSQL user name specified in startup packet");
  }
  const replication = parameters.get("replication");
  if (replication !== undefined && !isFalse(replication)) {
    return refuse("0A000", "replication connections are not supported");
  }
  const settings: (readonly [string, string])[] = [];
  const unknownOptions: string[] = [];
  for (const [name, value] of parameters) {
    if (NOT_SETTINGS.has(name)) continue;
    if (name.startsWith("_pq_.")) unknownOptions.push(name);
    else settings.push([name, value]);
  }
  const options = readOptions(parameters.get("options") ?? "");
  if (options === undefined) {
    return refuse("0A000", "options may hold only -c name=value and --name=value");
  }
  // The packet's own fields win over options, as PostgreSQL processes them later.
  const set = parameterSet([...options, ...settings]);
  if (!set.ok) return refuse(set.sqlState, set.message);
  const database = parameters.get("database") ?? "";
  return {
    ok: true,
    request: {
      user,
      database: database === "" ? user : database,
      parameters: set.parameters,
      unknownOptions,
    },
  };
}

const NOT_SETTINGS: ReadonlySet<string> = new Set(["user", "database", "options", "replication"]);

/** The spellings of false that PostgreSQL's parse_bool takes. */
function isFalse(value: string): boolean {
  return ["false", "f", "off", "no", "n", "0", ""].includes(value.toLowerCase());
}

function refuse(sqlState: string, message: string): StartupResult {
  return { ok: false, sqlState, message };
}
