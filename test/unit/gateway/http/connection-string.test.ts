import { describe, expect, test } from "bun:test";
import { readConnectionString } from "#gateway/http/connection-string.ts";

function read(text: string) {
  const result = readConnectionString(text);
  if (!result.ok) return result.error.code;
  const { user, password, database, parameters } = result.target;
  return { user, password: password?.reveal(), database, settings: [...parameters.entries] };
}

describe("a connection string", () => {
  test("names user, password and database, percent-decoded, whatever it points at", () => {
    const target = { user: "a b", password: "p@ss/%,", database: "d/b", settings: [] };

    for (const host of ["db.example", "127.0.0.1", "127.0.0.1:5432", "[::1]:5432", ""]) {
      expect(read(`postgresql://a%20b:p%40ss%2F%25,@${host}/d%2Fb`)).toEqual(
        host === "" ? "08P01" : target,
      );
    }
    expect(read("postgres://u@h/d")).toEqual({
      user: "u",
      password: undefined,
      database: "d",
      settings: [],
    });
  });

  test("carries settings of the session; what is about the link or a pool has no effect", () => {
    const query =
      "application_name=pkg%3Anpm%2Fx%401&sslmode=require&channel_binding=require&connect_timeout=5" +
      "&statement_timeout=1s&TimeZone=UTC&pgbouncer=true&client_encoding=latin1" +
      "&options=-c%20search_path%3Da%20--lock-timeout%3D2s%20-c%20client_encoding%3Dlatin1";

    expect(read(`postgresql://u:p@h/d?${query}`)).toMatchObject({
      settings: [
        ["application_name", "pkg:npm/x@1"],
        ["lock_timeout", "2s"],
        ["search_path", "a"],
        ["statement_timeout", "1s"],
        ["timezone", "UTC"],
      ],
    });
  });

  test("prefers a setting of its own name to the same one in options", () => {
    expect(read("postgresql://u:p@h/d?search_path=b&options=-csearch_path%3Da")).toMatchObject({
      settings: [["search_path", "b"]],
    });
  });

  test("that can't be understood is refused, and not repeated", () => {
    const strings = [
      "",
      "hunter2",
      "mysql://u:hunter2@h/d",
      "http://u:hunter2@h/d",
      "postgresql://u:hunter2@h",
      "postgresql://u:hunter2@h/",
      "postgresql://u:hunter2%ZZ@h/d",
      "postgresql://u:hunter2%00@h/d",
      "postgresql://u:p@h/d, postgresql://u:hunter2@h/d",
      "postgresql://u:hunter2@h:port/d",
    ];
    for (const text of strings) {
      const result = readConnectionString(text);

      expect([text, result.ok ? "ok" : result.error.code]).toEqual([text, "08P01"]);
      expect(JSON.stringify(result)).not.toContain("hunter2");
    }
  });

  test("with options or names that PostgreSQL could not take is refused as it would refuse them", () => {
    expect(read("postgresql://u:p@h/d?options=-x")).toBe("22023");
    expect(read("postgresql://u:p@h/d?options=-c%20a%27b%3D1")).toBe("42704");
  });
});
