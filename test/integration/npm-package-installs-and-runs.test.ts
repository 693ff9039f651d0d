// Packs the root package as npm would publish it, installs it in an empty project, and runs it there.
// The installation asks npm's cache first, and the registry for what is not in it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");
/** Cold caches and a busy machine: five packages, and perhaps Bun itself. */
const INSTALL_TIMEOUT_MS = 240_000;

const WALGATE = ["npx", "--no-install", "walgate"];

interface Outcome {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

let folder: string;
let project: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "walgate-package-"));
  project = join(folder, "project");
  await succeed(ROOT, "npm", "pack", "--pack-destination", folder);
  const [tarball] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
  expect(tarball).toBe(`walgate-${manifest.version}.tgz`);
  await Bun.write(join(project, "package.json"), '{ "private": true }\n');
  const options = ["--prefer-offline", "--no-audit", "--no-fund"];
  await succeed(project, "npm", "install", ...options, `../${tarball}`);
}, INSTALL_TIMEOUT_MS);

afterAll(() => rm(folder, { recursive: true, force: true }));

test("the installed package prints its version", async () => {
  expect(await run(project, ...WALGATE, "--version")).toEqual({
    code: 0,
    output: expect.stringContaining(manifest.version),
    errors: "",
  });
});

test("the installed package ends with 2 for a configuration file that is missing", async () => {
  const outcome = await run(project, ...WALGATE, "check", "--config", "missing.toml");

  expect({ ...outcome, errors: "" }).toEqual({ code: 2, output: "", errors: "" });
  expect(outcome.errors).toContain("missing.toml");
});

test("a Bun of another version on PATH is not used", async () => {
  const decoy = join(folder, "decoy");
  await Bun.write(join(decoy, "bun"), "#!/bin/sh\necho 0.0.1\n");
  await Bun.spawn(["chmod", "+x", join(decoy, "bun")]).exited;

  const path = `PATH=${decoy}:${process.env["PATH"]}`;
  const outcome = await run(project, "env", path, ...WALGATE, "--version");

  expect({ code: outcome.code, errors: outcome.errors }).toEqual({ code: 0, errors: "" });
  expect(outcome.output).toContain(manifest.version);
});

test("the installed package holds no test and no workspace of ours", async () => {
  const installed = join(project, "node_modules/walgate");

  const published: unknown = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  expect(JSON.stringify(Reflect.get(Object(published), "dependencies"))).not.toContain(
    "workspace:",
  );
  expect((await readdir(installed)).toSorted()).toEqual([
    "LICENSE",
    "README.md",
    "auth",
    "bin",
    "docs",
    "gateway",
    "package.json",
    "pool",
  ]);
});

async function succeed(cwd: string, ...command: string[]): Promise<void> {
  const { code, output, errors } = await run(cwd, ...command);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}\n${output}${errors}`);
}

async function run(cwd: string, ...command: string[]): Promise<Outcome> {
  const child = Bun.spawn(command, { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, output, errors };
}
