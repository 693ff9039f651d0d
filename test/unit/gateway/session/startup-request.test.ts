import { expect, test } from "bun:test";
import { type StartupResult, readStartupRequest } from "#gateway/session/startup-request.ts";

function read(parameters: Readonly<Record<string, string>>): StartupResult {
  return readStartupRequest({
    kind: "startup",
    protocolMinor: 0,
    parameters: new Map(Object.entries(parameters)),
  });
}

/** Settings by name, or the SQLSTATE. */
function settings(parameters: Readonly<Record<string, string>>): unknown {
  const result = read({ user: "u", ...parameters });
  return result.ok ? Object.fromEntries(result.request.parameters.entries) : result.sqlState;
}

test("the database is the user's name unless one is given", () => {
  const results = [
    read({ user: "u" }),
    read({ user: "u", database: "" }),
    read({ user: "u", database: "d" }),
  ];

  expect(results.map((result) => result.ok && result.request.database)).toEqual(["u", "u", "d"]);
});

test.each([
  ["no user", {}, "28000"],
  ["an empty user", { user: "" }, "28000"],
  ["replication", { user: "u", replication: "on" }, "0A000"],
  ["replication to a database", { user: "u", replication: "database" }, "0A000"],
  ["other switches", { user: "u", options: "-B 10" }, "0A000"],
  ["a switch without a value", { user: "u", options: "-c work_mem" }, "0A000"],
  ["a name with a quote", { user: "u", "a'b": "x" }, "42704"],
  ["a name with a quote in options", { user: "u", options: "-c a'b=x" }, "42704"],
])("%s is refused with its SQLSTATE", (_, parameters, sqlState) => {
  expect(read(parameters)).toMatchObject({ ok: false, sqlState });
});

test.each([["false"], ["off"], ["0"], ["no"], [""]])("replication = %p is none", (replication) => {
  expect(read({ user: "u", replication }).ok).toBe(true);
});

test("options set parameters in all three spellings, and the packet's own fields win", () => {
  expect(
    settings({
      options: "-c work_mem=1MB --search-path=a\\ b -cDateStyle=German",
      datestyle: "ISO",
      application_name: "x",
    }),
  ).toEqual({ work_mem: "1MB", search_path: "a b", datestyle: "ISO", application_name: "x" });
});

test("protocol options that are not known are listed and set nothing", () => {
  const result = read({ user: "u", "_pq_.a": "1", "_pq_.b": "2" });

  expect(result.ok && result.request.unknownOptions).toEqual(["_pq_.a", "_pq_.b"]);
  expect(settings({ "_pq_.a": "1" })).toEqual({});
});

test("equal settings have equal fingerprints in any order and case", () => {
  const fingerprints = [
    read({ user: "u", TimeZone: "UTC", work_mem: "1MB" }),
    read({ user: "v", work_mem: "1MB", timezone: "UTC" }),
    read({ user: "u", timezone: "UTC" }),
  ].map((result) => result.ok && result.request.parameters.fingerprint);

  expect(fingerprints[0]).toBe(fingerprints[1] ?? "");
  expect(fingerprints[0]).not.toBe(fingerprints[2] ?? "");
});
