// Each contradiction between two keys, as the exact line that its writer sees.
import { describe, expect, test } from "bun:test";
import {
  appended,
  databaseWith,
  MINIMAL_CONFIG,
  type Mistake,
  problemOf,
} from "#test/support/config-text.ts";

const JWT = '[[auth.jwt]]\nissuer = "https://i.example"\naudience = "walgate"\n';
const JWT_WITH_URL = `${JWT}jwks_url = "https://i.example/keys"\n`;

const CONTRADICTIONS: readonly Mistake[] = [
  ["no door", MINIMAL_CONFIG.replace(/postgres = .*/, ""), "gateway: needs http, postgres or both"],
  ["an empty file", "", "gateway: needs http, postgres or both"],
  ["no database", "[gateway]\nhttp = '[::1]:0'", "needs a section [databases.NAME]"],
  [
    "no profile",
    "[gateway]\nhttp = '[::1]:0'\n[databases.app]\nservers = ['h:1']",
    "needs a section [profiles.NAME]",
  ],
  [
    "a profile of an unknown database",
    MINIMAL_CONFIG.replace('database = "app"', 'database = "ap"'),
    "profiles.app.database: names no section of [databases], the nearest is databases.app",
  ],
  [
    "two passwords",
    appended("password = 'p'\npassword_env = 'P'"),
    "profiles.app: has password_env and password, only one may be given",
  ],
  [
    "two servers of one name, one of them by its place",
    databaseWith("servers = ['h:1', { name = 's1', address = 'h:2' }]"),
    "databases.app.servers[1]: has the same name as entry 0",
  ],
  [
    "two servers of one address",
    databaseWith("servers = ['h:1', { name = 'b', address = 'h:1' }]"),
    "databases.app.servers[1]: has the same address as entry 0",
  ],
  [
    "a monitor's password without a monitor",
    databaseWith("servers = ['h:1']\nmonitor_password_env = 'P'"),
    "databases.app.monitor_password_env: needs monitor_user",
  ],
  [
    "a database that nobody may watch",
    MINIMAL_CONFIG.replace('sql = "trusted"', 'sql = "untrusted"'),
    'databases.app.monitor_user: missing, and no profile of this database has sql = "trusted"',
  ],
  [
    "authorities that nothing is verified against",
    databaseWith("servers = ['h:1']\nsslmode = 'require'\nsslrootcert = 'ca.crt'"),
    'databases.app.sslrootcert: needs sslmode "verify-ca" or "verify-full"',
  ],
  [
    "a token key without a source",
    appended("[tokens]\nkeys = [{}]"),
    "tokens.keys[0]: needs one of secret_env, secret_file",
  ],
  [
    "an issuer without keys",
    appended(JWT),
    "auth.jwt[0]: needs one of jwks_url, jwks_file, secret_env, secret_file",
  ],
  [
    "an issuer with two kinds of keys",
    appended(`${JWT_WITH_URL}secret_env = 'S'`),
    "auth.jwt[0]: has jwks_url and secret_env, only one may be given",
  ],
  [
    "an issuer that is given twice",
    appended(`${JWT_WITH_URL}${JWT_WITH_URL}`),
    "auth.jwt[1]: has the same issuer as entry 0",
  ],
  [
    "HS256 with public keys",
    appended(`${JWT_WITH_URL}algorithms = ['ES256', 'HS256']`),
    "auth.jwt[0].algorithms[1]: HS256 needs secret_env or secret_file",
  ],
  [
    "a public key algorithm with a secret",
    appended(`${JWT}secret_env = 'S'\nalgorithms = ['RS256']`),
    "auth.jwt[0].algorithms[0]: a secret is for HS256 only",
  ],
  [
    "a rule of an unknown profile",
    appended("[[auth.rules]]\nmethod = 'password'\nprofile = 'ap'"),
    "auth.rules[0].profile: names no section of [profiles], the nearest is profiles.app",
  ],
  [
    "a rule without profile",
    appended("[[auth.rules]]\nmethod = 'password'"),
    "auth.rules[0].profile: missing",
  ],
  [
    "a rule that rejects and has a profile",
    appended("[[auth.rules]]\nmethod = 'reject'\nprofile = 'app'"),
    'auth.rules[0].profile: not for method "reject"',
  ],
  [
    "a rule of an unknown issuer",
    appended(
      `${JWT_WITH_URL}[[auth.rules]]\nmethod = 'jwt'\nprofile = 'app'\nissuer = 'https://j.example'`,
    ),
    "auth.rules[0].issuer: no [[auth.jwt]] has this issuer",
  ],
  [
    "a rule for tokens without an issuer",
    appended("[[auth.rules]]\nmethod = 'jwt'\nprofile = 'app'"),
    'auth.rules[0].method: "jwt" needs a section [[auth.jwt]]',
  ],
  [
    "claims in a rule for passwords",
    appended("[[auth.rules]]\nmethod = 'password'\nprofile = 'app'\nclaims = { a = 1 }"),
    'auth.rules[0].claims: only for method "jwt"',
  ],
  [
    "a tenant by claim in a rule for passwords",
    appended("[[auth.rules]]\nmethod = 'password'\nprofile = 'app'\ntenant = 'claim:org'"),
    'auth.rules[0].tenant: a claim is only for method "jwt"',
  ],
  [
    "a tenant by a claim without name",
    appended(`${JWT_WITH_URL}[[auth.rules]]\nmethod = 'jwt'\nprofile = 'app'\ntenant = 'claim:'`),
    "auth.rules[0].tenant: names no claim",
  ],
  [
    "a rule whose profile leads to another database",
    appended(
      "[databases.b]\nservers = ['h:1']\n[[auth.rules]]\nmethod = 'password'\ndatabase = 'b'\nprofile = 'app'",
    ),
    "auth.rules[0].profile: is a profile of another database",
  ],
  [
    "a rule that an earlier one hides",
    appended(
      "[[auth.rules]]\nmethod = 'password'\nuser = 'u'\nprofile = 'app'\n[[auth.rules]]\nuser = 'u'\nmethod = 'password'\nprofile = 'app'\ntenant = 't'",
    ),
    "auth.rules[1]: never matches, auth.rules[0] has the same conditions",
  ],
  [
    "a user that is given twice",
    appended("[[auth.users]]\nname = 'u'\nsecret = 'a'\n[[auth.users]]\nname = 'u'\nsecret = 'b'"),
    "auth.users[1]: has the same name as entry 0",
  ],
];

describe("mistakes of two keys", () => {
  for (const [title, text, problem, surroundings] of CONTRADICTIONS) {
    test(title, async () => {
      expect(await problemOf(text, surroundings)).toBe(problem);
    });
  }
});
