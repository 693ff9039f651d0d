// Unit tests of auth/passwords/user-list.ts.
import { describe, expect, test } from "bun:test";
import { parseUserFile, UserList } from "#auth/passwords/user-list.ts";
import { checkScramPassword, formatScramVerifier } from "#auth/scram/verifier.ts";
import { Secret } from "#auth/secret.ts";
import { fixedBytes, verifier } from "#test/unit/auth/support/scram.ts";

const VERIFIER = formatScramVerifier(verifier);
const MD5 = "md5" + "0123456789abcdef".repeat(2);

function createUsers(entries: readonly (readonly [string, string])[]) {
  const users = entries.map(([name, secret]) => ({ name, secret: new Secret(secret) }));
  return UserList.create(users, fixedBytes(4));
}

describe("UserList", () => {
  test("a stored verifier is found by the user's name", async () => {
    const result = createUsers([["app", VERIFIER]]);
    if (!result.ok) throw new Error(result.problem);

    expect(await result.users.verifier("app")).toEqual(verifier);
    expect(await result.users.verifier("App")).toBeUndefined();
    expect([result.users.has("app"), result.users.has("bob")]).toEqual([true, false]);
  });

  test("a plain password becomes one verifier for all who ask", async () => {
    const result = createUsers([["app", "pencil"]]);
    if (!result.ok) throw new Error(result.problem);

    const [first, second] = await Promise.all([
      result.users.verifier("app"),
      result.users.verifier("app"),
    ]);

    if (first === undefined) throw new Error("no verifier");
    expect(second).toBe(first);
    expect(first.salt).toEqual(new Uint8Array(16).fill(4));
    expect(await checkScramPassword(first, new Secret("pencil"))).toBe(true);
  });

  test("the shapes are those of the users, plain passwords included", () => {
    const result = createUsers([
      ["app", VERIFIER],
      ["bob", "pencil"],
    ]);

    expect(result.ok && result.users.shapes).toEqual([
      { iterations: 2, saltBytes: 16 },
      { iterations: 4096, saltBytes: 16 },
    ]);
  });

  test.each([
    [
      "an MD5 hash",
      [["app", MD5]],
      'user "app": an MD5 hash cannot be checked here; store a SCRAM-SHA-256 verifier instead',
    ],
    [
      "a broken verifier",
      [["app", "SCRAM-SHA-256$x"]],
      'user "app": the secret starts like a SCRAM-SHA-256 verifier but is not a valid one',
    ],
    ["an empty secret", [["app", ""]], 'user "app": the secret is empty'],
    ["an empty name", [["", "x"]], "a user has an empty name"],
    [
      "a name twice",
      [
        ["app", "x"],
        ["app", "y"],
      ],
      'user "app" is listed twice',
    ],
  ] as const)("a list with %s is refused", (_name, entries, problem) => {
    expect(createUsers(entries)).toEqual({ ok: false, problem });
  });

  test("a list prints no secret", () => {
    const result = createUsers([["app", "hunter2"]]);

    expect(Bun.inspect(result)).not.toContain("hunter2");
  });
});

describe("parseUserFile", () => {
  test("PgBouncer's format is read: comments, blank lines, doubled quotes, trailing text", () => {
    const result = parseUserFile(
      `; comment\n\n"app" "pencil"\r\n  "a""b"\t"c""d" ignored\n"v" "${VERIFIER}"`,
    );

    expect(result.ok && result.entries.map(({ name, secret }) => [name, secret.reveal()])).toEqual([
      ["app", "pencil"],
      ['a"b', 'c"d'],
      ["v", VERIFIER],
    ]);
  });

  test.each([
    ["no quotes", '"a" "b"\napp pencil', 2, 'expected "user" "secret", each in double quotes'],
    ["an open quote", '"app" "pencil', 1, 'expected "user" "secret", each in double quotes'],
    ["no secret", '"app"', 1, 'expected "user" "secret", each in double quotes'],
    ["no space between", '"app""pencil"', 1, 'expected "user" "secret", each in double quotes'],
    ["text at the secret", '"app" "pencil"x', 1, 'expected "user" "secret", each in double quotes'],
    [
      "an MD5 hash",
      `;\n"app" "${MD5}"`,
      2,
      "an MD5 hash cannot be checked here; store a SCRAM-SHA-256 verifier instead",
    ],
    ["an empty name", '"" "x"', 1, "the user name is empty"],
    ["a name twice", '"a" "x"\n"a" "y"', 2, 'user "a" is listed twice'],
  ])("a file with %s is refused with its line", (_name, text, line, problem) => {
    expect(parseUserFile(text)).toEqual({ ok: false, line, problem });
  });
});
