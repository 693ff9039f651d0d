import { expect, test } from "bun:test";
import { poolSettings } from "#gateway/config/pool-settings.ts";
import type { Config } from "#gateway/config/schema.ts";
import { loadText } from "#test/support/config-text.ts";

async function load(text: string): Promise<Config> {
  const result = await loadText(`
[gateway]
postgres = "127.0.0.1:0"
${text}`);
  if (!result.ok) throw result.error;
  return result.config;
}

test("a profile wins over its database, a database over [pool], and [pool] over the defaults", async () => {
  const config = await load(`
[pool]
default_pool_size = 1
query_timeout = 1
server_reset_query = "RESET ALL"
[databases.app]
servers = ["h:1"]
default_pool_size = 2
query_timeout = 2
pool_mode = "session"
[databases.other]
servers = ["h:1"]
default_pool_size = 4
[profiles.app]
database = "app"
user = "u"
query_timeout = 0
`);

  expect(poolSettings(config, "app")).toEqual({
    pool_mode: "session",
    default_pool_size: 2,
    query_wait_timeout: 120,
    max_query_waiters: 10_000,
    query_timeout: 0,
    idle_transaction_timeout: 0,
    server_lifetime: 3600,
    server_idle_timeout: 600,
    server_connect_timeout: 15,
    server_login_retry: 15,
    cancel_wait_timeout: 10,
    server_reset_query: "RESET ALL",
    max_prepared_statements: 200,
  });
});

test("every key of [pool] can be set for a profile", async () => {
  const settings = {
    pool_mode: "statement" as const,
    default_pool_size: 2,
    query_wait_timeout: 3,
    max_query_waiters: 4,
    query_timeout: 5,
    idle_transaction_timeout: 6,
    server_lifetime: 7,
    server_idle_timeout: 8,
    server_connect_timeout: 9,
    server_login_retry: 10,
    cancel_wait_timeout: 11,
    server_reset_query: "SELECT 12",
    max_prepared_statements: 13,
  };
  const config = await load(`
[databases.app]
servers = ["h:1"]
[profiles.app]
database = "app"
user = "u"
${Object.entries(settings)
  .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  .join("\n")}
`);

  expect(poolSettings(config, "app")).toEqual(settings);
  expect(Object.keys(settings).toSorted()).toEqual(Object.keys(config.pool).toSorted());
});

test("an unknown profile is a programmer's error", async () => {
  const config = await load(
    '[databases.app]\nservers = ["h:1"]\n[profiles.app]\ndatabase = "app"\nuser = "u"',
  );

  expect(() => poolSettings(config, "ap")).toThrow(
    new TypeError('no profile "ap" in the configuration'),
  );
});
