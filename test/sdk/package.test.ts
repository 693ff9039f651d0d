// The package as npm delivers it: built from a clean copy, packed, installed into an empty project,
// and run by Node.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** What a Worker pays for the code, all files, comments included. */
const GZIP_BYTES_MAX = 12 * 1024;

/** tsc and npm start cold here, on cores shared with other test files. */
const BUILD_TIMEOUT_MS = 60_000;

/** Kept as a list, so that a name cannot come or go unseen. */
const EXPORTS = [
  "ConnectionError",
  "DatabaseError",
  "Fragment",
  "Query",
  "QueueFullError",
  "RowCountError",
  "TimeoutError",
  "UnexpectedResponseError",
  "connect",
];

let folder: string;
let installed: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "walgate-sdk-"));
  const source = join(folder, "source");
  installed = join(folder, "project/node_modules/@walgate/sdk");
  await mkdir(installed, { recursive: true });
  for (const name of ["package.json", "tsconfig.build.json", "README.md", "LICENSE", "src"]) {
    await cp(join(ROOT, "sdk", name), join(source, name), { recursive: true });
  }
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  await run(["node", compiler, "-p", "tsconfig.build.json"], source);
  await run(["npm", "pack", "--ignore-scripts", "--offline", "--silent"], source);
  const archive = (await readdir(source)).find((name) => name.endsWith(".tgz")) ?? "";
  await run(
    ["tar", "-xzf", join(source, archive), "-C", installed, "--strip-components=1"],
    source,
  );
}, BUILD_TIMEOUT_MS);

afterAll(() => rm(folder, { recursive: true, force: true }));

async function run(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  if (code !== 0) {
    throw new Error(`${command.join(" ")} ended with ${code}: ${stdout}${stderr}`);
  }
  return stdout;
}

async function builtFiles(ending: string): Promise<{ name: string; text: string }[]> {
  const names = (await readdir(join(installed, "dist"))).filter((name) => name.endsWith(ending));
  return Promise.all(
    names.toSorted().map(async (name) => {
      return { name, text: await Bun.file(join(installed, "dist", name)).text() };
    }),
  );
}

describe("package", () => {
  test("the archive holds the built files, the texts and nothing else", async () => {
    const sources = (await readdir(join(ROOT, "sdk/src"))).map((name) =>
      name.slice(0, -".ts".length),
    );

    expect((await readdir(installed)).toSorted()).toEqual([
      "LICENSE",
      "README.md",
      "dist",
      "package.json",
    ]);
    expect((await readdir(join(installed, "dist"))).toSorted()).toEqual(
      sources.flatMap((name) => [`${name}.d.ts`, `${name}.js`]).toSorted(),
    );
  });

  test("nothing is installed with it", async () => {
    const manifest: unknown = await Bun.file(join(installed, "package.json")).json();

    expect(Object.keys(Object(manifest)).filter((key) => /dependencies/i.test(key))).toEqual([]);
  });

  test("no module imports anything but its neighbours, or names what only Node and Bun have", async () => {
    const files = await builtFiles(".js");

    const findings = files.flatMap(({ name, text }) =>
      foreignNames(text).map((finding) => `${name}: ${finding}`),
    );

    expect(files.length).toBeGreaterThan(0);
    expect(findings).toEqual([]);
  });

  test.each([
    ['import { x } from "node:net";', ["node:net"]],
    ['export { x } from "pg";', ["pg"]],
    ['const x = await import("fs");', ["fs"]],
    ["const x = Buffer.from(a);", ["Buffer"]],
    ["if (process.env.A) {}", ["process"]],
    ["return require(a);", ["require"]],
    ["Bun.file(a);", ["Bun"]],
  ])("the scan finds what must not be there: %s", (text, findings) => {
    expect(foreignNames(text)).toEqual(findings);
  });

  test("all modules together stay below 12 KB when compressed", async () => {
    const files = await builtFiles(".js");
    const bytes = Bun.gzipSync(files.map((file) => file.text).join("")).length;

    expect(bytes).toBeLessThan(GZIP_BYTES_MAX);
    expect(bytes).toBeGreaterThan(GZIP_BYTES_MAX / 4);
  });
});

/** Imports of other packages, and globals of Node or Bun, outside comments. */
function foreignNames(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const imports = [...code.matchAll(/\b(?:from|import)\s*\(?\s*["']([^"']+)["']/g)]
    .map((match) => match[1] ?? "")
    .filter((specifier) => !specifier.startsWith("./"));
  const globals = [
    ...code.matchAll(/\b(Buffer|process|require|Bun|Deno|__dirname|setImmediate)\b/g),
  ];
  return [...imports, ...globals.map((match) => match[1] ?? "")];
}

/** The same program for each runtime: prints what it got as JSON. */
const PROGRAM = `
  import * as sdk from "@walgate/sdk";
  const session = sdk.connect({ url: process.env.GATEWAY_URL, token: "a.b.c" }).session();
  const rows = await session\`select \${1} as n, \${["x", null]} as list\`;
  const error = await session\`fail\`.result().catch((error) => error);
  const isKnown = error instanceof sdk.DatabaseError;
  console.log(JSON.stringify({ names: Object.keys(sdk), rows, isKnown, code: error.code, token: session.token }));
`;

describe.each([["node"], [process.execPath]])("installed, run by %s", (runtime) => {
  test("it exports its names, queries over HTTP, keeps the token and leaves the process free to end", async () => {
    const seen: unknown[] = [];
    using gateway = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const body: unknown = await request.json();
        const { pathname } = new URL(request.url);
        const { method, headers } = request;
        const authorization = headers.get("Authorization");
        const token = headers.get("Walgate-Token");
        seen.push({ method, pathname, authorization, token, body });
        return seen.length === 1 ? rowsResponse() : errorResponse();
      },
    });
    await Bun.write(join(folder, "project/program.mjs"), PROGRAM);

    const child = Bun.spawn([runtime, "program.mjs"], {
      cwd: join(folder, "project"),
      env: { PATH: process.env["PATH"] ?? "", GATEWAY_URL: gateway.url.href },
      stdout: "pipe",
      stderr: "inherit",
    });
    const [output, code] = await Promise.all([child.stdout.text(), child.exited]);

    expect(code).toBe(0);
    expect(JSON.parse(output)).toEqual({
      names: EXPORTS,
      rows: [{ n: 1, list: ["x", null] }],
      isKnown: true,
      code: "42601",
      token: "wg1.b",
    });
    const request = { method: "POST", pathname: "/v1/query", authorization: "Bearer a.b.c" };
    expect(seen).toEqual([
      {
        ...request,
        token: null,
        body: { query: "select $1 as n, $2 as list", params: ["1", '{"x",NULL}'] },
      },
      { ...request, token: "wg1.a", body: { query: "fail", params: [] } },
    ]);
  });
});

function rowsResponse(): Response {
  const columns = [
    { name: "n", type: 23 },
    { name: "list", type: 1009 },
  ];
  const body = { columns, rows: [["1", "{x,NULL}"]], command: "SELECT", rowCount: 1 };
  return Response.json(body, { headers: { "Walgate-Token": "wg1.a" } });
}

function errorResponse(): Response {
  const body = { message: 'syntax error at or near "fail"', code: "42601", severity: "ERROR" };
  return Response.json(body, { status: 400, headers: { "Walgate-Token": "wg1.b" } });
}
