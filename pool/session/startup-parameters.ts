// The settings a client asked for in its startup packet, brought to whichever server connection serves it.

/** A set of settings, interned by its fingerprint. */
export interface ParameterSet {
  /** Equal exactly for equal sets; empty for the empty set. */
  readonly fingerprint: string;
  readonly entries: ReadonlyMap<string, string>;
}

export const NO_PARAMETERS: ParameterSet = { fingerprint: "", entries: new Map() };

/** Settings' names, with their class before the dot. */
const NAME_PATTERN = /^[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)*$/i;
/** PostgreSQL's own names are at most this long (NAMEDATALEN - 1). */
const NAME_LENGTH_MAX = 63;

/** Encodings, by all their names at PostgreSQL, in which a quote or backslash may be half of a letter. */
const UNSAFE_ENCODING =
  /^(big5|gb18030|gbk|johab|mskanji|shiftjis(2004)?|sjis|uhc|win(dows)?(932|936|949|950))$/;

/** They belong to a transaction, or can't be reset: what one client asked for would stay for the next. */
const NOT_OF_SESSION: ReadonlySet<string> = new Set([
  "seed",
  "transaction_deferrable",
  "transaction_isolation",
  "transaction_read_only",
]);

/** Spellings of true that PostgreSQL's parse_bool takes. */
const TRUE = /^(on|t(r(ue?)?)?|y(es?)?|1)$/i;

export type ParametersResult =
  | { readonly ok: true; readonly parameters: ParameterSet }
  | { readonly ok: false; readonly sqlState: string; readonly message: string };

/** Names are case-insensitive, as in PostgreSQL; the order of `entries` does not matter. */
export function parameterSet(entries: Iterable<readonly [string, string]>): ParametersResult {
  const sorted = new Map<string, string>();
  for (const [name, value] of entries) {
    if (!NAME_PATTERN.test(name) || name.length > NAME_LENGTH_MAX) {
      return {
        ok: false,
        sqlState: "42704",
        message: "unrecognized configuration parameter in the startup packet",
      };
    }
    const problem = problemOf(name.toLowerCase(), value);
    if (problem !== undefined) return { ok: false, sqlState: "0A000", message: problem };
    sorted.set(name.toLowerCase(), value);
  }
  if (sorted.size === 0) return { ok: true, parameters: NO_PARAMETERS };
  const pairs = [...sorted].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const parameters = { fingerprint: JSON.stringify(pairs), entries: new Map(pairs) };
  return { ok: true, parameters };
}

/** Settings under which a statement's text says something else than the classifier reads in it, or leaves state behind unseen. */
function problemOf(name: string, value: string): string | undefined {
  switch (name) {
    case "standard_conforming_strings":
      return TRUE.test(value) ? undefined : "standard_conforming_strings must be on at startup";
    case "client_encoding":
      return UNSAFE_ENCODING.test(value.toLowerCase().replace(/[^a-z0-9]/g, ""))
        ? "this client_encoding is not supported at startup"
        : undefined;
    case "search_path":
      return /pg_temp/i.test(value) ? "search_path may not name pg_temp at startup" : undefined;
    default:
      return NOT_OF_SESSION.has(name) ? `${name} can't be set at startup` : undefined;
  }
}

/**
 * The startup packet's `options`: command-line switches, of which `-c name=value` and `--name=value` set a parameter. A backslash
 * protects the character behind it, as in pg_split_opts().
 */
export function readOptions(options: string): readonly (readonly [string, string])[] | undefined {
  const words = splitOptions(options);
  const settings: (readonly [string, string])[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? "";
    let setting: string;
    if (word === "-c") setting = words[++i] ?? "";
    else if (word.startsWith("-c")) setting = word.slice(2);
    else if (word.startsWith("--")) setting = word.slice(2);
    else return undefined;
    const equals = setting.indexOf("=");
    if (equals <= 0) return undefined;
    settings.push([setting.slice(0, equals).replaceAll("-", "_"), setting.slice(equals + 1)]);
  }
  return settings;
}

function splitOptions(options: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  for (let i = 0; i < options.length; i++) {
    let char = options[i] ?? "";
    if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    if (char === "\\") char = options[++i] ?? "";
    word = (word ?? "") + char;
  }
  if (word !== undefined) words.push(word);
  return words;
}

/**
 * The statement text that brings a session from the settings named `previous` to `wanted`; empty when there is nothing to do. One
 * string, so that it takes effect whole or not at all. RESET ALL can't fail on a name, as RESET of one that is a reserved word does;
 * it leaves alone who the session acts for.
 */
export function transition(previous: readonly string[], wanted: ParameterSet): string {
  const statements: string[] = [];
  if (previous.some((name) => !wanted.entries.has(name))) {
    statements.push("RESET ALL");
    if (previous.includes("role")) statements.push("RESET ROLE");
    if (previous.includes("session_authorization")) statements.push("RESET SESSION AUTHORIZATION");
  }
  const calls: string[] = [];
  for (const [name, value] of wanted.entries) {
    calls.push(`pg_catalog.set_config('${name}', ${literal(value)}, false)`);
  }
  if (calls.length > 0) statements.push(`SELECT ${calls.join(", ")}`);
  return statements.join("; ");
}

/** Escape string syntax: the same value whether standard_conforming_strings is on or off. */
function literal(value: string): string {
  return `E'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/**
 * What a prepared statement's meaning depends on besides its text: PostgreSQL looks names up by search_path and folds literals such as
 * '2024-01-02'::timestamptz when it parses. Statements are shared only between sessions that agree on every setting but their name.
 */
export function parseContext({ entries }: ParameterSet): string {
  if (entries.size === 0) return "[]";
  return JSON.stringify([...entries].filter(([name]) => name !== "application_name"));
}
