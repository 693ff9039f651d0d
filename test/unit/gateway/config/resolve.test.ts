// References that lead nowhere give one line; those that lead somewhere are replaced by what is there.
import { describe, expect, test } from "bun:test";
import type { JwtKeys } from "#gateway/config/schema.ts";
import {
  CERTIFICATE_PEM,
  OTHER_PRIVATE_KEY_PEM,
  PRIVATE_KEY_PEM,
} from "#test/fixtures/tls-fixture.ts";
import {
  appended,
  loadText,
  MINIMAL_CONFIG,
  type Mistake,
  problemOf,
} from "#test/support/config-text.ts";

const SECRET_OF_32_BYTES = "0123456789abcdef0123456789abcdef";
const JWT = '[[auth.jwt]]\nissuer = "https://i.example"\naudience = "walgate"\n';
/** Secrets compare as equal to each other, so their text is compared. */
function keyText(keys: JwtKeys): string {
  return keys.kind === "secret" ? keys.secret.reveal() : JSON.stringify(keys);
}

const TLS = '[gateway.tls]\ncert_file = "server.crt"\nkey_file = "server.key"';

const BROKEN_REFERENCES: readonly Mistake[] = [
  [
    "a variable that is not set",
    appended("password_env = 'APP_PASSWORD'"),
    "profiles.app.password_env: the environment variable APP_PASSWORD is not set",
  ],
  [
    "a variable whose name may be a secret is not shown",
    appended("password_env = 'hunter2'"),
    "profiles.app.password_env: the environment variable is not set",
  ],
  [
    "an empty variable",
    appended("password_env = 'APP_PASSWORD'"),
    "profiles.app.password_env: the secret is empty",
    { env: { APP_PASSWORD: "" } },
  ],
  [
    "a secret file that is missing",
    appended("password_file = 'password'"),
    "profiles.app.password_file: the file does not exist",
  ],
  [
    "a secret file that is empty but for its line feed",
    appended("password_file = 'password'"),
    "profiles.app.password_file: the secret is empty",
    { files: { password: "\n" } },
  ],
  [
    "a secret with a NUL",
    appended("password_file = 'password'"),
    "profiles.app.password_file: the secret has a NUL",
    { files: { password: "a\0b" } },
  ],
  [
    "a secret of HS256 with 31 bytes",
    appended(`${JWT}secret_env = 'S'`),
    "auth.jwt[0].secret_env: the secret has 31 bytes, must have at least 32",
    { env: { S: SECRET_OF_32_BYTES.slice(1) } },
  ],
  [
    "a token key with 31 bytes",
    appended("[tokens]\nkeys = [{ secret_env = 'A' }, { secret_env = 'B' }]"),
    "tokens.keys[1].secret_env: the secret has 31 bytes, must have at least 32",
    { env: { A: SECRET_OF_32_BYTES, B: SECRET_OF_32_BYTES.slice(1) } },
  ],
  [
    "a key set that is not one",
    appended(`${JWT}jwks_file = 'keys.json'`),
    'auth.jwt[0].jwks_file: the file is not a JSON object with a list "keys"',
    { files: { "keys.json": "[]" } },
  ],
  [
    "a certificate that is none",
    appended(TLS),
    "gateway.tls.cert_file: the file has no certificate in PEM, or one that is broken",
    { files: { "server.crt": PRIVATE_KEY_PEM, "server.key": PRIVATE_KEY_PEM } },
  ],
  [
    "a private key that is none",
    appended(TLS),
    "gateway.tls.key_file: the file has no private key in PEM without a passphrase",
    { files: { "server.crt": CERTIFICATE_PEM, "server.key": CERTIFICATE_PEM } },
  ],
  [
    "the private key of another certificate",
    appended(TLS),
    "gateway.tls.key_file: the key is not that of the certificate",
    { files: { "server.crt": CERTIFICATE_PEM, "server.key": OTHER_PRIVATE_KEY_PEM } },
  ],
  [
    "a user's secret that cannot be checked",
    appended("[[auth.users]]\nname = 'u'\nsecret = 'md5d41d8cd98f00b204e9800998ecf8427e'"),
    'auth.users[0]: user "u": an MD5 hash cannot be checked here; store a SCRAM-SHA-256 verifier instead',
  ],
  [
    "a broken line of a user list",
    appended("[auth]\nauth_file = 'userlist.txt'"),
    'auth.auth_file: line 2: expected "user" "secret", each in double quotes',
    { files: { "userlist.txt": '"a" "b"\n"c" d' } },
  ],
  [
    "a user of the user list that the file has too",
    appended("[auth]\nauth_file = 'userlist.txt'\n[[auth.users]]\nname = 'a'\nsecret = 's'"),
    'auth.auth_file: user "a" is listed twice',
    { files: { "userlist.txt": '"a" "b"' } },
  ],
];

describe("mistakes of references", () => {
  for (const [title, text, problem, surroundings] of BROKEN_REFERENCES) {
    test(title, async () => {
      expect(await problemOf(text, surroundings)).toBe(problem);
    });
  }
});

describe("a configuration that is right", () => {
  test("the smallest one has every default and two warnings", async () => {
    const result = await loadText(MINIMAL_CONFIG);

    if (!result.ok) throw result.error;
    const { tokens, ...config } = result.config;
    expect(config).toEqual({
      gateway: {
        postgres: { host: "127.0.0.1", port: 6432 },
        worker_id: 0,
        peer_id: 0,
        max_client_conn: 1000,
        max_login_clients: 1000,
        client_login_timeout: 60,
        client_idle_timeout: 0,
        client_read_timeout: 60,
        max_packet_size: 1024 ** 3,
        max_client_buffer: 256 * 1024 ** 2,
        shutdown_timeout: 30,
        log_level: "info",
      },
      http: {
        allowed_origins: [],
        trusted_proxies: [],
        max_request_body: 16 * 1024 ** 2,
        max_response_body: 64 * 1024 ** 2,
        prepare_threshold: 5,
        max_header_size: 64 * 1024,
        max_ws_message: 64 * 1024 ** 2,
      },
      pool: {
        pool_mode: "transaction",
        default_pool_size: 20,
        query_wait_timeout: 120,
        max_query_waiters: 10_000,
        server_lifetime: 3600,
        server_idle_timeout: 600,
        server_connect_timeout: 15,
        server_login_retry: 15,
        cancel_wait_timeout: 10,
        server_reset_query: "DISCARD ALL",
        max_prepared_statements: 200,
      },
      databases: {
        app: {
          dbname: "app",
          servers: [{ name: "s1", address: { host: "10.0.0.1", port: 5432 }, weight: 1 }],
          sslmode: "prefer",
          consistency: "session",
          consistency_wait: 0.1,
        },
      },
      profiles: { app: { database: "app", user: "app", parameters: {}, sql: "trusted" } },
      auth: { jwt: [], rules: [], users: [] },
    });
    expect(tokens.max_wait).toBe(5);
    expect(result.warnings).toEqual([
      "/etc/walgate/walgate.toml: tokens.keys: empty, so tokens are signed with a random key and end with this process",
      "/etc/walgate/walgate.toml: auth.rules: empty, so every client is refused",
    ]);
  });

  test("without a token key each start makes another one of 32 random bytes", async () => {
    const results = [await loadText(MINIMAL_CONFIG), await loadText(MINIMAL_CONFIG)];

    const keys = results.flatMap((result) => (result.ok ? result.config.tokens.keys : []));
    const bytes = keys.map((key) => Buffer.from(key.reveal(), "base64url").byteLength);
    expect(bytes).toEqual([32, 32]);
    expect(new Set(keys.map((key) => key.reveal())).size).toBe(2);
  });

  test("references are replaced by what they lead to", async () => {
    const text = `
[gateway]
http = "[::1]:8080"
[gateway.tls]
cert_file = "tls/server.crt"
key_file = "/run/server.key"
[tokens]
keys = [{ secret_env = "NEW" }, { secret_file = "old" }]
[databases.app]
dbname = "app_v2"
servers = [{ address = "db.example:5432", weight = 3 }, "[::1]:5433"]
monitor_user = "monitor"
monitor_password_file = "monitor"
sslmode = "verify-ca"
sslrootcert = "ca.crt"
default_pool_size = 5
[profiles.app]
database = "app"
user = "app"
password = "in the file"
[[auth.jwt]]
issuer = "https://a.example"
audience = ["x", "y"]
secret_env = "NEW"
[[auth.jwt]]
issuer = "https://b.example"
audience = "x"
jwks_file = "keys.json"
algorithms = ["ES256"]
[[auth.rules]]
method = "jwt"
claims = { role = "admin", level = 3, ok = true }
profile = "app"
[auth]
auth_file = "userlist.txt"
`;
    const result = await loadText(text, {
      env: { NEW: SECRET_OF_32_BYTES },
      files: {
        "tls/server.crt": CERTIFICATE_PEM,
        "/run/server.key": PRIVATE_KEY_PEM,
        old: `old-${SECRET_OF_32_BYTES}\r\n`,
        monitor: "m\n",
        "ca.crt": CERTIFICATE_PEM,
        "keys.json": '{"keys":[]}',
        "userlist.txt": '"u" "p"\n',
      },
    });

    if (!result.ok) throw result.error;
    const { gateway: doors, tokens, databases, profiles, auth } = result.config;
    expect(doors.http).toEqual({ host: "::1", port: 8080 });
    expect(doors.tls?.certificate).toBe(CERTIFICATE_PEM);
    expect(doors.tls?.private_key.reveal()).toBe(PRIVATE_KEY_PEM.trimEnd());
    expect(tokens.keys.map((key) => key.reveal())).toEqual([
      SECRET_OF_32_BYTES,
      `old-${SECRET_OF_32_BYTES}`,
    ]);
    const { monitor_password: monitorPassword, ...database } = databases["app"] ?? {};
    expect(database).toEqual({
      dbname: "app_v2",
      servers: [
        { name: "s1", address: { host: "db.example", port: 5432 }, weight: 3 },
        { name: "s2", address: { host: "::1", port: 5433 }, weight: 1 },
      ],
      monitor_user: "monitor",
      sslmode: "verify-ca",
      sslrootcert: CERTIFICATE_PEM,
      consistency: "session",
      consistency_wait: 0.1,
      default_pool_size: 5,
    });
    expect(monitorPassword?.reveal()).toBe("m");
    expect(profiles["app"]?.password?.reveal()).toBe("in the file");
    expect(auth.jwt.map(({ keys, ...issuer }) => ({ ...issuer, keys: keyText(keys) }))).toEqual([
      { issuer: "https://a.example", audience: ["x", "y"], keys: SECRET_OF_32_BYTES },
      {
        issuer: "https://b.example",
        audience: ["x"],
        keys: '{"kind":"jwks","jwks":{"keys":[]}}',
        algorithms: ["ES256"],
      },
    ]);
    expect(auth.rules).toEqual([
      { method: "jwt", claims: { role: "admin", level: 3, ok: true }, profile: "app" },
    ]);
    expect(auth.users.map(({ name, secret }) => [name, secret.reveal()])).toEqual([["u", "p"]]);
    expect(result.warnings).toEqual([]);
  });
});
