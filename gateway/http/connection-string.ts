// Reads the connection string that a client sends as its credential: who it is, which database it wants, and its settings. Where it points is not asked.
import { Secret } from "#auth/secret.ts";
import { type ParameterSet, parameterSet, readOptions } from "#pool/session/startup-parameters.ts";
import { type ServerError, ownError } from "../session/server-error.ts";

export interface ConnectionTarget {
  /** Empty when the string has none. */
  readonly user: string;
  readonly password: Secret | undefined;
  readonly database: string;
  readonly parameters: ParameterSet;
}

export type ConnectionStringResult =
  | { readonly ok: true; readonly target: ConnectionTarget }
  | { readonly ok: false; readonly error: ServerError };

/**
 * Query parameters that are settings of the session. The others are about the link or a client's pool (sslmode, channel_binding,
 * connect_timeout …) and are accepted without effect, as the drivers that send them expect.
 */
const SETTINGS: ReadonlySet<string> = new Set([
  "application_name",
  "bytea_output",
  "datestyle",
  "default_transaction_deferrable",
  "default_transaction_isolation",
  "default_transaction_read_only",
  "extra_float_digits",
  "idle_in_transaction_session_timeout",
  "intervalstyle",
  "lock_timeout",
  "search_path",
  "statement_timeout",
  "timezone",
  "transaction_timeout",
]);

/** Answers are read as UTF-8 whatever a client asks for: they leave as JSON. */
const FIXED_SETTING = "client_encoding";

const SCHEME = /^postgres(ql)?:\/\//;

/** Errors repeat nothing of the string, which holds a password. */
export function readConnectionString(text: string): ConnectionStringResult {
  // HTTP joins repeated headers; which of two credentials counts must not depend on who reads them.
  if (/,\s*postgres(ql)?:\/\//.test(text)) return invalid("more than one connection string");
  if (!SCHEME.test(text) || !URL.canParse(text)) {
    return invalid("the connection string is not a postgresql:// URL");
  }
  const url = new URL(text);
  const user = decode(url.username);
  const password = decode(url.password);
  const database = decode(url.pathname.replace(/^\//, ""));
  if (user === undefined || password === undefined || database === undefined) {
    return invalid("the connection string has an invalid percent-encoding");
  }
  if (database === "" || `${user}${password}${database}`.includes("\0")) {
    return invalid("the connection string names no database");
  }
  const settings = readSettings(url.searchParams);
  if (settings === undefined) return invalid("invalid command-line arguments in options", "22023");
  const parameters = parameterSet(settings);
  if (!parameters.ok) return invalid(parameters.message, parameters.sqlState);
  return {
    ok: true,
    target: {
      user,
      password: password === "" ? undefined : new Secret(password),
      database,
      parameters: parameters.parameters,
    },
  };
}

/** Named parameters win over the same ones in `options`. */
function readSettings(query: URLSearchParams): readonly (readonly [string, string])[] | undefined {
  const options = query.get("options");
  const fromOptions = options === null ? [] : readOptions(options);
  if (fromOptions === undefined) return undefined;
  const named = [...query].filter(([name]) => SETTINGS.has(name.toLowerCase()));
  return [...fromOptions, ...named].filter(([name]) => name.toLowerCase() !== FIXED_SETTING);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function invalid(message: string, code = "08P01"): ConnectionStringResult {
  return { ok: false, error: ownError(code, message, { severity: "FATAL" }) };
}
