// A client's startup parameters: which are taken, how options are split, and the text that puts them in force.
import { describe, expect, test } from "bun:test";
import {
  NO_PARAMETERS,
  type ParameterSet,
  parameterSet,
  readOptions,
  transition,
} from "#pool/session/startup-parameters.ts";

function setOf(...entries: readonly (readonly [string, string])[]): ParameterSet {
  const result = parameterSet(entries);
  if (!result.ok) throw new Error(result.message);
  return result.parameters;
}

describe("sets", () => {
  test("equal sets have equal fingerprints, in whatever order and case their names came", () => {
    const one = setOf(["TimeZone", "UTC"], ["datestyle", "ISO"]);
    const other = setOf(["DateStyle", "ISO"], ["timezone", "UTC"]);

    expect(one).toEqual(other);
    expect(one.fingerprint).not.toBe(setOf(["timezone", "UTC"]).fingerprint);
  });

  test("no parameters are the empty set", () => {
    expect(setOf()).toBe(NO_PARAMETERS);
  });

  test("values can't be moved between names", () => {
    expect(setOf(["a", 'x"],["b","y']).fingerprint).not.toBe(
      setOf(["a", "x"], ["b", "y"]).fingerprint,
    );
  });

  test.each(["", "a b", "a;b", "a'b", "1a", "a.", "a".repeat(64)])(
    "the name %p is refused with 42704",
    (name) => {
      expect(parameterSet([[name, "x"]])).toMatchObject({ ok: false, sqlState: "42704" });
    },
  );

  test.each([
    ["standard_conforming_strings", "off"],
    ["Standard_Conforming_Strings", "0"],
    ["client_encoding", "SJIS"],
    ["client_encoding", "gb18030"],
    ["client_encoding", "win936"],
    ["search_path", 'app, "pg_temp"'],
    ["seed", "0.5"],
    ["transaction_read_only", "off"],
  ])(
    "%s = %s, under which texts say something else than they seem to, is refused",
    (name, value) => {
      expect(parameterSet([[name, value]])).toMatchObject({ ok: false, sqlState: "0A000" });
    },
  );

  test.each([
    ["standard_conforming_strings", "on"],
    ["client_encoding", "UTF-8"],
    ["client_encoding", "LATIN1"],
    ["client_encoding", "'windows-1252'"],
    ["client_encoding", "EUC_JP"],
    ["search_path", "app, public"],
  ])("%s = %s is taken", (name, value) => {
    expect(parameterSet([[name, value]]).ok).toBe(true);
  });

  test.each(["search_path", "myapp.tenant", "_a$1", "a".repeat(63)])(
    "the name %p is taken",
    (name) => {
      expect(parameterSet([[name, "x"]]).ok).toBe(true);
    },
  );
});

describe("options", () => {
  test.each([
    ["-c search_path=a,b", [["search_path", "a,b"]]],
    [
      "-csearch_path=a -c  work_mem=1MB",
      [
        ["search_path", "a"],
        ["work_mem", "1MB"],
      ],
    ],
    ["--statement-timeout=5s", [["statement_timeout", "5s"]]],
    ["-c application_name=my\\ app\\\\x", [["application_name", "my app\\x"]]],
    ["-c a=b=c", [["a", "b=c"]]],
    ["  ", []],
  ] as const)("%p", (text, expected) => {
    expect(readOptions(text)).toEqual(expected.map(([name, value]) => [name, value]));
  });

  test.each(["-B 100", "search_path=a", "-c", "-c =x", "--"])("%p is refused", (text) => {
    expect(readOptions(text)).toBeUndefined();
  });
});

describe("the text that puts them in force", () => {
  test("values are quoted so that they mean themselves whatever the string syntax is", () => {
    expect(transition([], setOf(["a", "it's \\ n"]))).toBe(
      "SELECT pg_catalog.set_config('a', E'it\\'s \\\\ n', false)",
    );
  });

  test("what only the last client had is reset with all else, and all of it is one string", () => {
    expect(transition(["user.a", "b"], setOf(["b", "1"], ["c", "2"]))).toBe(
      "RESET ALL; SELECT pg_catalog.set_config('b', E'1', false), pg_catalog.set_config('c', E'2', false)",
    );
  });

  test("who the last client acted for is reset by name", () => {
    expect(transition(["role", "session_authorization"], NO_PARAMETERS)).toBe(
      "RESET ALL; RESET ROLE; RESET SESSION AUTHORIZATION",
    );
  });

  test("from nothing to nothing there is nothing to do", () => {
    expect(transition([], NO_PARAMETERS)).toBe("");
  });
});
