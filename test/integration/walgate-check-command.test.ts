// The command line as a person uses it: child processes, their exit codes and what they print.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { MINIMAL_CONFIG } from "#test/support/config-text.ts";

const MAIN = new URL("../../gateway/main.ts", import.meta.url).pathname;
const EXAMPLE = new URL("../../walgate.example.toml", import.meta.url).pathname;

const EXAMPLE_ENVIRONMENT = {
  WALGATE_TOKEN_KEY: "0123456789abcdef0123456789abcdef",
  WALGATE_MONITOR_PASSWORD: "m",
  APP_USER_PASSWORD: "u",
  APP_PASSWORD: "p",
  APP_SCRAM_VERIFIER: "v",
};

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "walgate-check-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    cwd: folder,
    env,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    child.stdout.text(),
    child.stderr.text(),
  ]);
  return { code, stdout, stderr };
}

describe("walgate check", () => {
  test("the example passes without a warning", async () => {
    const result = await run(["check", "--config", EXAMPLE], EXAMPLE_ENVIRONMENT);

    expect(result).toEqual({ code: 0, stdout: "ok\n", stderr: "" });
  });

  test("each variable that the example names is needed", async () => {
    const results = await Promise.all(
      Object.keys(EXAMPLE_ENVIRONMENT).map(async (left) => {
        const env = Object.fromEntries(
          Object.entries(EXAMPLE_ENVIRONMENT).filter(([name]) => name !== left),
        );
        const { code, stderr } = await run(["check", "--config", EXAMPLE], env);
        return [code, stderr.includes(`the environment variable ${left} is not set`)];
      }),
    );

    expect(results).toEqual(Object.keys(EXAMPLE_ENVIRONMENT).map(() => [2, true]));
  });

  test("warnings are printed and do not fail", async () => {
    await writeFile(join(folder, "walgate.toml"), MINIMAL_CONFIG);

    expect(await run(["check"])).toEqual({
      code: 0,
      stdout:
        "warning: walgate.toml: tokens.keys: empty, so tokens are signed with a random key and end with this process\n" +
        "warning: walgate.toml: auth.rules: empty, so every client is refused\n" +
        "ok\n",
      stderr: "",
    });
  });

  test("a mistake is one line on stderr and exit code 2", async () => {
    await writeFile(join(folder, "wrong.toml"), "[pool]\ndefualt_pool_size = 1\n");

    expect(await run(["check", "-c", "wrong.toml"])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "walgate: wrong.toml: pool.defualt_pool_size: unknown key, the nearest valid key is pool.default_pool_size\n",
    });
  });

  test("a missing file is one line on stderr and exit code 2", async () => {
    expect(await run(["check", "--config", "missing.toml"])).toEqual({
      code: 2,
      stdout: "",
      stderr: "walgate: missing.toml: does not exist\n",
    });
  });
});

test("walgate serve starts nothing with a wrong configuration", async () => {
  expect(await run(["serve", "--config", "missing.toml"])).toEqual({
    code: 2,
    stdout: "",
    stderr: "walgate: missing.toml: does not exist\n",
  });
});

test("walgate --version prints the package's version", async () => {
  expect(await run(["--version"])).toEqual({
    code: 0,
    stdout: `${packageJson.version}\n`,
    stderr: "",
  });
});

test("walgate --help prints every command", async () => {
  const { code, stdout, stderr } = await run(["--help"]);

  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout.match(/^ {2}walgate \w+/gm)).toEqual([
    "  walgate serve",
    "  walgate check",
    "  walgate dev",
  ]);
});

test("a wrong command line is exit code 2 with the help", async () => {
  const results = await Promise.all(
    [[], ["chek"], ["check", "serve"], ["check", "--confg", "x"]].map((args) => run(args)),
  );

  expect(
    results.map(({ code, stdout, stderr }) => [
      code,
      stdout,
      stderr.split("\n")[0],
      /Usage:/.test(stderr),
    ]),
  ).toEqual([
    [2, "", "walgate: no command", true],
    [2, "", 'walgate: unknown command "chek"', true],
    [2, "", "walgate: more than one command", true],
    [2, "", expect.stringContaining("walgate: Unknown option '--confg'"), true],
  ]);
});
