// Each mistake that the schema finds, as the exact line that its writer sees.
import { describe, expect, test } from "bun:test";
import {
  appended,
  databaseWith,
  gatewayWith,
  MINIMAL_CONFIG,
  type Mistake,
  problemOf,
} from "#test/support/config-text.ts";

const JWT = '[[auth.jwt]]\nissuer = "https://i.example"\naudience = "walgate"\n';

const KEY_MISTAKES: readonly Mistake[] = [
  [
    "a misspelt key names the nearest valid one",
    "[pool]\ndefualt_pool_size = 3",
    "pool.defualt_pool_size: unknown key, the nearest valid key is pool.default_pool_size",
  ],
  [
    "a key in the wrong section names the right one",
    "[gateway]\npool_mode = 'session'",
    "gateway.pool_mode: unknown key here, but pool.pool_mode exists",
  ],
  [
    "a misspelt section names the nearest valid one",
    "[pol]\npool_mode = 'session'",
    "pol: unknown key, the nearest valid key is pool",
  ],
  [
    "a misspelt key inside a list names its place",
    "[[auth.jwt]]\nissuer = 'a'\n[[auth.jwt]]\nisuer = 'b'",
    "auth.jwt[1].isuer: unknown key, the nearest valid key is auth.jwt[1].issuer",
  ],
  [
    "a misspelt key inside a server is that server's mistake",
    databaseWith("servers = ['h:1', { adress = 'h:2' }]"),
    "databases.app.servers[1].adress: unknown key, the nearest valid key is databases.app.servers[1].address",
  ],
  [
    "a misspelt key is reported before the missing one that it stands for",
    "[profiles.app]\ndatabse = 'app'\nuser = 'u'",
    "profiles.app.databse: unknown key, the nearest valid key is profiles.app.database",
  ],
  [
    "a name that needs quotation marks has them in the path",
    '[profiles."my app"]\ncolour = 1',
    'profiles."my app".colour: unknown key, the nearest valid key is profiles."my app".user',
  ],
  ["a key of an object's prototype is unknown", "__proto__ = 1", "__proto__: unknown key"],
  [
    "a table named like a prototype is unknown",
    "[databases.__proto__]\nservers = []",
    "databases.__proto__: unknown key",
  ],
  [
    "a reserved parameter is not valid",
    appended("parameters = { user = 'postgres' }"),
    "profiles.app.parameters.user: not a valid name, must be a parameter name other than user, database, replication and options",
  ],
  [
    "a name of 64 characters is not valid",
    `[databases.${"n".repeat(64)}]\nservers = ['h:1']`,
    `databases.${"n".repeat(64)}: not a valid name, must be 1 to 63 characters without control characters`,
  ],
  [
    "tables in tables without end are refused before they are walked",
    `${Array.from({ length: 50 }, () => "a").join(".")} = 1`,
    "a.a.a.a.a.a.a.a: nested too deeply",
  ],
];

const VALUE_MISTAKES: readonly Mistake[] = [
  ["a section that is no table", "pool = 1", "pool: must be a table"],
  ["a list that is no list", "[auth]\nrules = 1", "auth.rules: must be an array"],
  [
    "a word outside the list",
    "[pool]\npool_mode = 'sesion'",
    'pool.pool_mode: must be "transaction" or "session" or "statement"',
  ],
  [
    "text for an integer",
    "[pool]\ndefault_pool_size = '20'",
    "pool.default_pool_size: must be an integer from 1 to 10000",
  ],
  [
    "a fraction for an integer",
    "[pool]\ndefault_pool_size = 1.5",
    "pool.default_pool_size: must be an integer from 1 to 10000",
  ],
  [
    "a duration that never ends where a wait needs an end",
    "[pool]\nquery_wait_timeout = 0",
    "pool.query_wait_timeout: must be a number of seconds from 0.001 to 2147483",
  ],
  [
    "a duration that no timer can wait for",
    "[gateway]\nclient_idle_timeout = 2147484",
    "gateway.client_idle_timeout: must be a number of seconds from 0 to 2147483",
  ],
  [
    "an infinite duration",
    "[gateway]\nclient_idle_timeout = inf",
    "gateway.client_idle_timeout: must be a number of seconds from 0 to 2147483",
  ],
  [
    "a size with an unknown unit",
    "[http]\nmax_request_body = '16 TB'",
    'http.max_request_body: must be a size such as "16MB" or an integer of bytes, from 1KB to 1GB',
  ],
  [
    "a size out of range",
    "[http]\nmax_request_body = '1025MB'",
    'http.max_request_body: must be a size such as "16MB" or an integer of bytes, from 1KB to 1GB',
  ],
  [
    "an address without port",
    "[gateway]\nhttp = '127.0.0.1'",
    'gateway.http: must be "host:port" with a port from 0 to 65535',
  ],
  [
    "port 0 of a server",
    databaseWith("servers = ['h:0']"),
    'databases.app.servers[0]: must be "host:port" with a port from 1 to 65535, or a table with an address',
  ],
  [
    "port 0 of a named server",
    databaseWith("servers = [{ address = 'h:0' }]"),
    'databases.app.servers[0].address: must be "host:port" with a port from 1 to 65535',
  ],
  ["no servers", databaseWith("servers = []"), "databases.app.servers: must not be empty"],
  ["a missing key", "[profiles.app]\nuser = 'u'", "profiles.app.database: missing"],
  [
    "a NUL in a role name",
    '[profiles.app]\ndatabase = "app"\nuser = "a\\u0000b"',
    "profiles.app.user: must be a string of 1 to 1024 characters without NUL",
  ],
  [
    "a table in place of a list of tables",
    appended("[auth.users]\nname = 'app'"),
    "auth.users: must be a list; of tables, it is written with [[ ]]",
  ],
  [
    "a table in place of a list of words",
    appended("[http]\nallowed_origins = { a = 1 }"),
    "http.allowed_origins: must be a list; of tables, it is written with [[ ]]",
  ],
  [
    "statements of users that are not built yet",
    MINIMAL_CONFIG.replace('sql = "trusted"', 'sql = "persisted"'),
    'profiles.app.sql: "persisted" is not built yet, must be "untrusted" or "trusted"',
  ],
  [
    "a level of freshness that is not built yet",
    databaseWith("servers = ['h:1']\nconsistency = 'bounded'"),
    'databases.app.consistency: "bounded" is not built yet, must be "session" or "eventual" or "primary"',
  ],
  [
    "keys over http from another machine",
    `${JWT}jwks_url = 'http://i.example/keys'`,
    "auth.jwt[0].jwks_url: must be an https URL without user and password, or an http URL of the local machine",
  ],
  [
    "an origin with a path",
    "[http]\nallowed_origins = ['https://app.example/']",
    'http.allowed_origins[0]: must be an origin such as "https://app.example", or "*"',
  ],
  [
    "a network with too long a prefix",
    "[http]\ntrusted_proxies = ['10.0.0.0/33']",
    'http.trusted_proxies[0]: must be an IP address or a network such as "10.0.0.0/8"',
  ],
  [
    "a text that is not TOML",
    "[pool]\n\npool_mode = session",
    "line 3: not TOML: Strings must be quoted",
  ],
  ["a key that is given twice", "[pool]\na = 1\na = 2", "line 3: not TOML: Cannot redefine key"],
  [
    "arrays in arrays without end",
    `a = ${"[".repeat(400_000)}`,
    "line 1: not TOML: nested too deeply",
  ],
];

describe("mistakes of keys", () => {
  for (const [title, text, problem, surroundings] of KEY_MISTAKES) {
    test(title, async () => {
      expect(await problemOf(text, surroundings)).toBe(problem);
    });
  }
});

describe("mistakes of values", () => {
  for (const [title, text, problem, surroundings] of VALUE_MISTAKES) {
    test(title, async () => {
      expect(await problemOf(text, surroundings)).toBe(problem);
    });
  }
});

describe("limits", () => {
  const allowed: readonly (readonly [title: string, text: string])[] = [
    ["the shortest wait", appended("[pool]\nquery_wait_timeout = 0.001")],
    ["the longest timer", gatewayWith("client_idle_timeout = 2147483")],
    ["no idle timeout", gatewayWith("client_idle_timeout = 0")],
    ["the highest worker and peer", gatewayWith("worker_id = 63\npeer_id = 31")],
    ["the longest frame", gatewayWith("max_packet_size = 1073741824")],
    ["the shortest frame", gatewayWith("max_packet_size = '64KB'")],
    ["port 0 of a door", MINIMAL_CONFIG.replace(":6432", ":0")],
    ["port 65535 of a server", databaseWith("servers = ['h:65535']")],
    [
      "a database name of 63 characters",
      `${MINIMAL_CONFIG}[databases.${"n".repeat(63)}]\nservers = ['h:1']\nmonitor_user = 'm'`,
    ],
    [
      "a role name of 1024 characters",
      MINIMAL_CONFIG.replace('user = "app"', `user = "${"u".repeat(1024)}"`),
    ],
    [
      "keys over http from the local machine",
      appended(`${JWT}jwks_url = 'http://127.0.0.1:1/keys'`),
    ],
  ];
  for (const [title, text] of allowed) {
    test(`${title} is allowed`, async () => {
      expect(await problemOf(text)).toBe("no problem");
    });
  }

  const refused: readonly Mistake[] = [
    [
      "worker 64",
      gatewayWith("worker_id = 64"),
      "gateway.worker_id: must be an integer from 0 to 63",
    ],
    ["peer 32", gatewayWith("peer_id = 32"), "gateway.peer_id: must be an integer from 0 to 31"],
    [
      "a frame of one byte more",
      gatewayWith("max_packet_size = 1073741825"),
      'gateway.max_packet_size: must be a size such as "16MB" or an integer of bytes, from 64KB to 1GB',
    ],
    [
      "a frame that is shorter than what is forwarded whole",
      gatewayWith("max_packet_size = 65535"),
      'gateway.max_packet_size: must be a size such as "16MB" or an integer of bytes, from 64KB to 1GB',
    ],
    [
      "a role name of 1025 characters",
      MINIMAL_CONFIG.replace('user = "app"', `user = "${"u".repeat(1025)}"`),
      "profiles.app.user: must be a string of 1 to 1024 characters without NUL",
    ],
  ];
  for (const [title, text, problem] of refused) {
    test(`${title} is refused`, async () => {
      expect(await problemOf(text)).toBe(problem);
    });
  }
});
