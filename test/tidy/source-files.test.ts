// What every source file keeps to and no linter rule can say.
import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");
const SOURCES = [
  "auth",
  "pool",
  "gateway",
  "sdk/src",
  "wrangler-compat/src",
  "wrangler-compat/testing",
  "scripts",
  "bin",
];
const OTHERS = ["test", "docs", ".ci"];

/** Shorter than this, a first line cannot say what a file is for. */
const PURPOSE_CHARACTERS_MIN = 20;
const SUPPRESSION = /(?:oxlint|eslint)-disable|@ts-expect-error/;
const FORBIDDEN = /\bas any\b|@ts-(?:ignore|nocheck)/;
/** They hold violations on purpose. */
const EXEMPT = ["test/tidy/source-files.test.ts", "test/tidy/planted-violations.ts"];

interface TextFile {
  readonly path: string;
  readonly text: string;
}

const sources = await readFolders(SOURCES);
const all = [...sources, ...(await readFolders(OTHERS)), ...(await readTop())];
const code = all.filter((file) => /\.(?:ts|mjs)$/.test(file.path));

describe("each source file", () => {
  test("is found by this test", () => {
    expect(sources.map((file) => file.path)).toContain("scripts/test.ts");
  });

  test("says on its first line what it is for", () => {
    expect(sources.filter((file) => !hasPurpose(file.text)).map((file) => file.path)).toEqual([]);
  });

  test("has a reason for each suppression, on the same line", () => {
    expect(findLines(code, isUnexplainedSuppression)).toEqual([]);
  });

  test("neither casts to any nor silences the checker", () => {
    expect(findLines(code, (line) => FORBIDDEN.test(line))).toEqual([]);
  });
});

test("no file names the machine or the registry it was written with", () => {
  const names = machineNames();

  expect(findLines(all, (line) => names.some((name) => line.includes(name)))).toEqual([]);
});

describe("the scripts of package.json", () => {
  const scripts = Object.entries(manifest.scripts);

  test.each(scripts)("%s uses the Bun that the engines name", (_, script) => {
    expect(/bun@(\S+)/.exec(script)?.[1]).toBe(manifest.engines.bun);
  });

  test.each(scripts)(
    "%s is one that a shell can read, and runs a file that is there",
    async (_, script) => {
      const { exitCode, stderr } = Bun.spawnSync(["sh", "-n", "-c", script]);
      const file = /\S+\.ts$/.exec(script)?.[0] ?? "";

      expect([exitCode, stderr.toString()]).toEqual([0, ""]);
      expect(await Bun.file(join(ROOT, file)).exists()).toBe(true);
    },
  );
});

describe("the checks themselves", () => {
  test.each([
    ["// Reads frames off a socket.\n", true],
    ["/** Reads frames off a socket. */\n", true],
    ["#!/usr/bin/env node\n// Starts the gateway under Bun.\n", true],
    ["// Frames.\n", false],
    ['import { x } from "./x.ts";\n', false],
  ])("of the first line judges %j as %p", (text, expected) => {
    expect(hasPurpose(text)).toBe(expected);
  });

  test.each([
    ["const value = other as any;", true],
    ["// @ts-ignore: the types are wrong", true],
    ["const value = other as AnyValue;", false],
  ])("of casts judges %j as %p", (line, expected) => {
    expect(FORBIDDEN.test(line)).toBe(expected);
  });

  test.each([
    ["// oxlint-disable-next-line no-console -- the command line prints", false],
    ["// oxlint-disable-next-line no-console", true],
    ["// @ts-expect-error -- isServer is missing in the types", false],
    ["// @ts-expect-error", true],
  ])("of suppressions judges %j as %p", (line, expected) => {
    expect(isUnexplainedSuppression(line)).toBe(expected);
  });
});

function hasPurpose(text: string): boolean {
  const lines = text.split("\n");
  const first = lines[0]?.startsWith("#!") === true ? lines[1] : lines[0];
  return (
    first !== undefined &&
    /^(?:\/\/|\/\*\*) \S/.test(first) &&
    first.length >= PURPOSE_CHARACTERS_MIN
  );
}

function isUnexplainedSuppression(line: string): boolean {
  return SUPPRESSION.test(line) && !/ -- \S.{8,}/.test(line);
}

function findLines(files: readonly TextFile[], matches: (line: string) => boolean): string[] {
  return files
    .filter((file) => !EXEMPT.includes(file.path))
    .flatMap((file) =>
      file.text
        .split("\n")
        .flatMap((line, index) => (matches(line) ? [`${file.path}:${index + 1}`] : [])),
    );
}

/** Taken from the machine, so that this file does not name it either. */
function machineNames(): string[] {
  const names: string[] = [];
  // A folder right below the root, such as /app, is a word that may stand anywhere.
  if (ROOT.split("/").length > 2) names.push(ROOT);
  if (hostname().length > 5 && hostname() !== "localhost") names.push(hostname());
  const registry = Bun.env["npm_config_registry"];
  const host = registry === undefined ? undefined : URL.parse(registry)?.host;
  if (host !== undefined && host !== "registry.npmjs.org") names.push(host);
  return names;
}

async function readFolders(folders: readonly string[]): Promise<TextFile[]> {
  const files: TextFile[] = [];
  for (const folder of folders) {
    const paths = new Bun.Glob("**/*").scan({ cwd: join(ROOT, folder), dot: true });
    for await (const path of paths) {
      if (/(?:^|\/)(?:node_modules|dist)\//.test(path)) continue;
      files.push(await readText(join(folder, path)));
    }
  }
  return files.filter((file) => !file.text.includes("\0"));
}

async function readTop(): Promise<TextFile[]> {
  const paths = await Array.fromAsync(new Bun.Glob("*").scan({ cwd: ROOT, dot: true }));
  return Promise.all(paths.map(readText));
}

async function readText(path: string): Promise<TextFile> {
  return { path, text: await Bun.file(join(ROOT, path)).text() };
}
