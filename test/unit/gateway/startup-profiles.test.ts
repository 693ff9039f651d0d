import { expect, test } from "bun:test";
import type { Config } from "#gateway/config/schema.ts";
import { toMonitorLogin, toProfiles } from "#gateway/startup-profiles.ts";
import { loadText } from "#test/support/config-text.ts";

async function configOf(text: string): Promise<Config> {
  const result = await loadText(text, { env: { PASSWORD: "secret" } });
  if (!result.ok) throw result.error;
  return result.config;
}

const TEXT = `
[gateway]
postgres = "127.0.0.1:6432"
[pool]
default_pool_size = 7
query_wait_timeout = 3
[tokens]
max_wait = 2
[databases.app]
dbname = "real"
servers = ["10.0.0.1:5432"]
consistency_wait = 9
pool_mode = "session"
[profiles.own]
database = "app"
user = "app"
password_env = "PASSWORD"
sql = "trusted"
default_pool_size = 2
parameters = { statement_timeout = "5s" }
[profiles.web]
database = "app"
user = "web"
password_env = "PASSWORD"
`;

test("a profile is in milliseconds, its own settings over the database's over the pool's", async () => {
  const profiles = toProfiles(await configOf(TEXT));

  expect([...profiles.keys()]).toEqual(["own", "web"]);
  expect(profiles.get("own")).toMatchObject({
    name: "own",
    generation: 0,
    database: "app",
    dbname: "real",
    user: "app",
    isTrusted: true,
    poolMode: "session",
    defaultPoolSize: 2,
    queryWaitTimeoutMs: 3_000,
    parameters: { statement_timeout: "5s" },
    serverResetQuery: "DISCARD ALL",
  });
  expect(profiles.get("web")).toMatchObject({ isTrusted: false, defaultPoolSize: 7 });
});

test("a read waits for a replica no longer than any request may ask for", async () => {
  const profiles = toProfiles(await configOf(TEXT));

  expect(profiles.get("own")?.consistencyWaitMs).toBe(2_000);
});

test("the monitor logs in as monitor_user, else as the first trusted profile's user, else not at all", async () => {
  const named = await configOf(
    TEXT.replace("dbname", 'monitor_user = "watch"\nmonitor_password_env = "PASSWORD"\ndbname'),
  );
  const trusted = await configOf(TEXT);
  const logins = [named, trusted].map((config) => {
    const database = config.databases["app"];
    return database && toMonitorLogin("app", database, toProfiles(config));
  });
  const database = trusted.databases["app"];
  const none = database && toMonitorLogin("app", database, new Map());

  expect(logins.map((login) => [login?.dbname, login?.user])).toEqual([
    ["real", "watch"],
    ["real", "app"],
  ]);
  expect(logins[1]?.password?.reveal()).toBe("secret");
  expect(none).toBeUndefined();
});
