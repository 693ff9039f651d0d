// Plants one violation for each wall and each rule that holds the style, and requires a report of it.
// A linter that parses nothing also reports nothing: only planted violations show that it looks.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BOUNDARIES, STYLE, type Plant } from "./planted-violations.ts";

const ROOT = join(import.meta.dir, "../..");
const PLANTS = [...BOUNDARIES, ...STYLE];

interface Report {
  readonly filename: string;
  readonly code: string;
}

let folder: string;
let reports: readonly Report[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "walgate-lint-"));
  // The overrides match paths below the configuration, so a tree laid out like ours gets our walls.
  for (const name of [".oxlintrc.json", "package.json", "tsconfig.json"]) {
    await copyFile(join(ROOT, name), join(folder, name));
  }
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  for (const plant of PLANTS) await plantFiles(plant);
  reports = await lint();
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe.each(PLANTS)("$rule", (plant) => {
  test(`${plant.title} is ${plant.isAllowed === true ? "accepted" : "reported"}`, () => {
    const found = reports.filter((report) => report.filename === plant.path);

    const codes = plant.isAllowed === true ? [] : [plant.rule];
    expect([...new Set(found.map((report) => report.code))]).toEqual(codes);
  });
});

test("no two plants share a file, so that each report belongs to one of them", () => {
  const paths = PLANTS.map((plant) => plant.path);

  expect(paths.length - new Set(paths).size).toBe(0);
});

async function plantFiles(plant: Plant): Promise<void> {
  const files = { [plant.path]: plant.text, ...plant.others };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

async function lint(): Promise<Report[]> {
  const oxlint = Bun.spawn(
    [join(ROOT, "node_modules/.bin/oxlint"), "--type-aware", "--format=json"],
    { cwd: folder, stdout: "pipe", stderr: "pipe" },
  );
  const [output, errors] = await Promise.all([
    new Response(oxlint.stdout).text(),
    new Response(oxlint.stderr).text(),
  ]);
  await oxlint.exited;
  const answer: unknown = JSON.parse(output);
  if (!hasDiagnostics(answer)) throw new Error(`oxlint answered ${output}${errors}`);
  // "eslint(max-lines)" names the plugin and the rule; a rule name is all a plant gives.
  return answer.diagnostics.map(({ filename, code }) => ({
    filename,
    code: /\((.+)\)/.exec(code)?.[1] ?? code,
  }));
}

function hasDiagnostics(value: unknown): value is { diagnostics: Report[] } {
  return typeof value === "object" && value !== null && "diagnostics" in value;
}
