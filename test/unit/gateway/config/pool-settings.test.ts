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
server_idle_timeout = 1
server_reset_query = "RESET ALL"
[databases.app]
servers = ["h:1"]
default_pool_size = 2
server_idle_timeout = 2
pool_mode = "session"
[databases.other]
servers = ["h:1"]
monitor_user = "m"
default_pool_size = 4
[profiles.app]
database = "app"
user = "u"
sql = "trusted"
server_idle_timeout = 3
`);

  expect(poolSettings(config, "app")).toEqual({
    pool_mode: "session",
    default_pool_size: 2,
    query_wait_timeout: 120,
    max_query_waiters: 10_000,
    server_lifetime: 3600,
    server_idle_timeout: 3,
    server_connect_timeout: 15,
    server_login_retry: 15,
    cancel_wait_timeout: 10,
    server_reset_query: "RESET ALL",
    max_prepared_statements: 200,
  });
});

test("every key of [pool] but the pause between logins can be set for a profile", async () => {
  const settings = {
    pool_mode: "statement" as const,
    default_pool_size: 2,
    query_wait_timeout: 3,
    max_query_waiters: 4,
    server_lifetime: 7,
    server_idle_timeout: 8,
    server_connect_timeout: 9,
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
sql = "trusted"
${Object.entries(settings)
  .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  .join("\n")}
`);

  const all = { ...settings, server_login_retry: 15 };
  expect(poolSettings(config, "app")).toEqual(all);
  expect(Object.keys(all).toSorted()).toEqual(Object.keys(config.pool).toSorted());
});

test("an unknown profile is a programmer's error", async () => {
  const config = await load(
    '[databases.app]\nservers = ["h:1"]\n[profiles.app]\ndatabase = "app"\nuser = "u"\nsql = "trusted"',
  );

  expect(() => poolSettings(config, "ap")).toThrow(
    new TypeError('no profile "ap" in the configuration'),
  );
});
