// A secret may stand in the right key, in a wrong one, without quotation marks or in a variable: whatever the load
// says, and whatever prints its result, does not contain it.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { loadText, type Surroundings } from "#test/support/config-text.ts";
import { CERTIFICATE_PEM, PRIVATE_KEY_PEM } from "#test/fixtures/tls-fixture.ts";

const COMPLETE_CONFIG = `
[gateway]
http = "127.0.0.1:8080"
max_client_conn = 100
max_packet_size = "1MB"
log_level = "info"
[gateway.tls]
cert_file = "server.crt"
key_file = "server.key"
[http]
allowed_origins = ["https://app.example"]
trusted_proxies = ["10.0.0.0/8"]
[tokens]
keys = [{ secret_env = "TOKEN_KEY" }, { secret_file = "token.key" }]
[pool]
pool_mode = "transaction"
query_wait_timeout = 5.5
[databases.app]
servers = ["h:1", { name = "b", address = "h:2", weight = 2 }]
monitor_user = "monitor"
monitor_password_env = "MONITOR_PASSWORD"
sslmode = "verify-full"
sslrootcert = "server.crt"
consistency = "session"
[profiles.app]
database = "app"
user = "app"
password = "in the file"
parameters = { statement_timeout = "5s" }
sql = "trusted"
[[auth.jwt]]
issuer = "https://a.example"
audience = "walgate"
secret_env = "TOKEN_KEY"
[[auth.jwt]]
issuer = "https://b.example"
audience = ["x", "y"]
jwks_file = "keys.json"
[[auth.rules]]
method = "jwt"
transport = "http"
claims = { role = "admin" }
tenant = "claim:org"
profile = "app"
[[auth.users]]
name = "u"
secret_file = "user.secret"
`;

const SURROUNDINGS = {
  env: { TOKEN_KEY: "k".repeat(32), MONITOR_PASSWORD: "m" },
  files: {
    "server.crt": CERTIFICATE_PEM,
    "server.key": PRIVATE_KEY_PEM,
    "token.key": "t".repeat(32),
    "keys.json": '{"keys":[]}',
    "user.secret": "p",
  },
} as const;

/** As passwords, keys and tokens look; long enough that no message contains one by chance. */
const secrets = fc.oneof(
  fc.uint8Array({ minLength: 6, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex")),
  fc
    .uint8Array({ minLength: 12, maxLength: 48 })
    .map((bytes) => Buffer.from(bytes).toString("base64")),
  fc.string({ minLength: 12, maxLength: 64, unit: "grapheme-ascii" }),
);

const VALUES = [...COMPLETE_CONFIG.matchAll(/= (?:\[\{? ?)?|, |: /g)];
const STRINGS = [...COMPLETE_CONFIG.matchAll(/"[^"]*"/g)];
const LINES = COMPLETE_CONFIG.split("\n").length;

function replaceAt(text: string, index: number, length: number, replacement: string): string {
  return text.slice(0, index) + replacement + text.slice(index + length);
}

async function everythingSaid(text: string, surroundings: Surroundings): Promise<string> {
  const result = await loadText(text, surroundings);
  if (!result.ok) return `${result.error.message}${result.error.stack ?? ""}`;
  const { tokens, databases, profiles, auth, gateway } = result.config;
  const passwords = [
    gateway.tls?.private_key,
    tokens.keys,
    databases["app"]?.monitor_password,
    profiles["app"]?.password,
    auth.jwt.map(({ keys }) => keys),
    auth.users,
  ];
  return `${JSON.stringify(passwords)}${Bun.inspect(passwords, { depth: 10 })}${result.warnings.join()}`;
}

async function expectUnsaid(
  text: string,
  surroundings: Surroundings,
  secret: string,
): Promise<void> {
  expect(await everythingSaid(text, surroundings)).not.toContain(secret);
}

test("the configuration that the other tests change is right", async () => {
  expect(await loadText(COMPLETE_CONFIG, SURROUNDINGS)).toMatchObject({ ok: true, warnings: [] });
});

test("a secret in place of any string of the file is not said", async () => {
  const isPlainName = /"(?:u|app|monitor|x|y|walgate|https:\/\/[ab]\.example)"/;
  // Names of roles, issuers and the like are no place for a secret: they are data that the result shows.
  const places = STRINGS.filter(([text]) => !isPlainName.test(text));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...places), secrets, async ({ index, 0: old }, secret) => {
      const text = replaceAt(COMPLETE_CONFIG, index, old.length, JSON.stringify(secret));
      await expectUnsaid(text, SURROUNDINGS, secret);
    }),
  );
});

test("a secret without quotation marks is not said", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...STRINGS), secrets, async ({ index, 0: old }, secret) => {
      await expectUnsaid(
        replaceAt(COMPLETE_CONFIG, index, old.length, secret),
        SURROUNDINGS,
        secret,
      );
    }),
  );
});

test("a secret before any value is not said", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...VALUES), secrets, async ({ index, 0: old }, secret) => {
      const text = replaceAt(COMPLETE_CONFIG, index + old.length, 0, JSON.stringify(secret));
      await expectUnsaid(text, SURROUNDINGS, secret);
    }),
  );
});

test("a secret behind an unknown or misplaced key is not said", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: LINES }),
      fc.constantFrom("pasword", "password", "secret", "secret_env", "password_env"),
      secrets,
      async (line, key, secret) => {
        const lines = COMPLETE_CONFIG.split("\n");
        lines.splice(line, 0, `${key} = ${JSON.stringify(secret)}`);
        await expectUnsaid(lines.join("\n"), SURROUNDINGS, secret);
      },
    ),
  );
});

test("a secret in a variable or file is not said", async () => {
  const names = [...Object.keys(SURROUNDINGS.env), ...Object.keys(SURROUNDINGS.files)].filter(
    // Certificates and public keys are no secrets, and shown as they are.
    (name) => name !== "server.crt" && name !== "keys.json",
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), secrets, async (name, secret) => {
      const env = { ...SURROUNDINGS.env, ...(name in SURROUNDINGS.env ? { [name]: secret } : {}) };
      const files = {
        ...SURROUNDINGS.files,
        ...(name in SURROUNDINGS.files ? { [name]: secret } : {}),
      };
      await expectUnsaid(COMPLETE_CONFIG, { env, files }, secret);
    }),
  );
});
