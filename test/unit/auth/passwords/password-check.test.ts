// Unit tests of auth/passwords/password-check.ts. Derivations are real, with two rounds each.
import { describe, expect, test } from "bun:test";
import { PasswordCheck } from "#auth/passwords/password-check.ts";
import { Secret } from "#auth/secret.ts";
import { PASSWORD, verifier } from "#test/unit/auth/support/scram.ts";

function createCheck(
  limits: Partial<Record<"cacheCountMax" | "runningMax" | "waitingMax", number>> = {},
) {
  return new PasswordCheck({ processKey: new Uint8Array(32), ...limits });
}

const right = new Secret(PASSWORD);
const wrong = new Secret("wrong");

describe("PasswordCheck", () => {
  test("a right password is remembered and a wrong one is not", async () => {
    const check = createCheck();

    expect(await check.check("app", verifier, right)).toBe("right");
    expect(await check.check("app", verifier, wrong)).toBe("wrong");
    expect(check.cachedCount).toBe(1);
  });

  test("a remembered password needs no derivation", async () => {
    const check = createCheck({ runningMax: 1, waitingMax: 0 });
    await check.check("app", verifier, right);

    const busyMaker = check.check("app", verifier, wrong);
    const remembered = await check.check("app", verifier, right);

    expect([remembered, await busyMaker]).toEqual(["right", "wrong"]);
  });

  test("a remembered password is good for its own user, verifier and text only", async () => {
    const check = createCheck();
    await check.check("app", verifier, right);
    const changed = { ...verifier, storedKey: new Uint8Array(32) };

    expect(await check.check("app", changed, right)).toBe("wrong");
    expect(await check.check("app", verifier, new Secret(`${PASSWORD} `))).toBe("wrong");
  });

  test("equal checks at the same time are one", async () => {
    const check = createCheck({ runningMax: 1, waitingMax: 0 });

    const first = check.check("app", verifier, wrong);
    const second = check.check("app", verifier, wrong);

    expect(second).toBe(first);
    expect(await second).toBe("wrong");
  });

  test("the last place in the queue is given out and one more is told busy", async () => {
    const check = createCheck({ runningMax: 1, waitingMax: 1 });

    const results = await Promise.all(
      ["a", "b", "c"].map((user) => check.check(user, verifier, right)),
    );

    expect(results).toEqual(["right", "right", "busy"]);
  });

  test("the queue is empty again after its checks", async () => {
    const check = createCheck({ runningMax: 2, waitingMax: 3 });
    const users = ["a", "b", "c", "d", "e"];

    for (const round of [1, 2, 3]) {
      const results = await Promise.all(
        users.map((user) => check.check(`${user}${round}`, verifier, wrong)),
      );
      expect(results).toEqual(users.map(() => "wrong"));
    }
  });

  test("the cache never grows over its maximum", async () => {
    const check = createCheck({ cacheCountMax: 2 });

    for (const user of ["a", "b", "c"]) await check.check(user, verifier, right);

    expect(check.cachedCount).toBe(2);
  });

  test("a check that began before a clear leaves nothing behind", async () => {
    const check = createCheck();

    const running = check.check("app", verifier, right);
    check.clear();

    expect(await running).toBe("right");
    expect(check.cachedCount).toBe(0);
  });
});
