// The violations that lint-walls.test.ts plants, each next to what is just still allowed.

import manifest from "../../package.json" with { type: "json" };

export interface Plant {
  /** The rule that must be reported, without its plugin. */
  readonly rule: string;
  readonly title: string;
  readonly path: string;
  readonly text: string;
  /** Nothing at all may be reported for the file. */
  readonly isAllowed?: true;
  /** Further files that the violation needs. */
  readonly others?: Readonly<Record<string, string>>;
}

let planted = 0;

/** A file in `folder` that imports `source` and uses what it imports. */
function imports(folder: string, source: string, isAllowed?: true): Plant {
  planted++;
  return {
    rule: "no-restricted-imports",
    title: `${source} in ${folder}`,
    path: `${folder}/planted-${planted}.ts`,
    text: `import { planted } from "${source}";\n\nexport const copy: unknown = planted;\n`,
    ...(isAllowed === true ? { isAllowed } : {}),
  };
}

function allows(folder: string, source: string): Plant {
  return imports(folder, source, true);
}

/** A file whose body is one function that holds `statement`. */
function calls(folder: string, statement: string, isAllowed?: true): Plant {
  planted++;
  return {
    rule: "no-restricted-properties",
    title: `${statement} in ${folder}`,
    path: `${folder}/planted-${planted}.ts`,
    text: `export function planted(): unknown {\n  return ${statement};\n}\n`,
    ...(isAllowed === true ? { isAllowed } : {}),
  };
}

function importText(text: string, title: string, path: string): Plant {
  return { rule: "no-restricted-imports", title, path, text };
}

// Every dependency of the root, so that a new one has to be given a home before this test passes.
const PACKAGES = [
  "@elysiajs/openapi",
  ...Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }),
].filter((name) => !name.startsWith("@types/"));

const HOMES: Readonly<Record<string, readonly string[]>> = {
  jose: ["auth/jwt"],
  "libpg-query": ["pool/wire"],
  elysia: ["gateway/config"],
  "@elysiajs/openapi": ["gateway/config"],
  "@sinclair/typebox": ["auth/jwt", "pool/wire", "gateway/config"],
  "@walgate/sdk": ["wrangler-compat/src"],
};

function packagePlants(name: string): Plant[] {
  const folders = ["auth/jwt", "pool/wire", "gateway/config", "sdk/src", "wrangler-compat/src"];
  return folders.map((folder) =>
    HOMES[name]?.includes(folder) === true ? allows(folder, name) : imports(folder, name),
  );
}

const LISTEN = "Bun.listen({ hostname: '', port: 0, socket: {} })";
const CONNECT = "Bun.connect({ hostname: '', port: 0, socket: {} })";
const SERVE = "Bun.serve({ fetch: () => new Response() })";

export const BOUNDARIES: readonly Plant[] = [
  // Rooms import downward only.
  imports("auth", "#pool/planted.ts"),
  imports("auth", "#gateway/planted.ts"),
  imports("auth", "#test/planted.ts"),
  imports("auth", "../pool/planted.ts"),
  imports("auth/jwt", "#auth/secret.ts"),
  imports("auth/jwt", "../../pool/planted.ts"),
  imports("auth/jwt", "../../auth/secret.ts"),
  allows("auth/jwt", "../secret.ts"),
  allows("auth/jwt", "./claims.ts"),
  imports("pool/wire", "#gateway/planted.ts"),
  imports("pool/wire", "#pool/planted.ts"),
  imports("pool/wire", "#auth/identity.ts"),
  imports("pool/wire", "#auth/passwords/user-list.ts"),
  imports("pool/wire", "#auth/jwt/claims.ts"),
  imports("pool/wire", "../../gateway/planted.ts"),
  imports("pool/wire", "../../scripts/planted.ts"),
  allows("pool/wire", "#auth/scram/client-exchange.ts"),
  allows("pool/wire", "#auth/passwords/md5.ts"),
  allows("pool/wire", "#auth/secret.ts"),
  allows("pool/wire", "../backend/planted.ts"),
  imports("pool/transport", "#gateway/planted.ts"),
  imports("pool/transport", "#auth/identity.ts"),
  imports("gateway/postgres", "#gateway/planted.ts"),
  imports("gateway/postgres", "#test/planted.ts"),
  imports("gateway/postgres", "../../sdk/src/index.ts"),
  imports("gateway/http", "#test/planted.ts"),
  allows("gateway/postgres", "#auth/jwt/claims.ts"),
  allows("gateway/http", "#pool/wire/frames.ts"),
  imports("sdk/src", "#auth/secret.ts"),
  imports("sdk/src", "../../auth/secret.ts"),
  imports("sdk/src", "node:crypto"),
  imports("sdk/src", "bun"),
  allows("sdk/src", "./session.ts"),
  imports("wrangler-compat/src", "../../sdk/src/index.ts"),
  imports("wrangler-compat/src", "#pool/planted.ts"),
  allows("wrangler-compat/src", "@walgate/sdk"),
  allows("scripts", "#gateway/embedded/start-cluster.ts"),
  allows("test/unit/pool", "#pool/wire/frames.ts"),

  // No form of import gets through.
  importText(
    'import type { Planted } from "#pool/planted.ts";\n\nexport type Copy = Planted;\n',
    "a type-only import of pool in auth",
    "auth/planted-type.ts",
  ),
  importText(
    'export { planted } from "#pool/planted.ts";\n',
    "a re-export of pool in auth",
    "auth/planted-export.ts",
  ),
  importText(
    'export function planted(): Promise<unknown> {\n  return import("#pool/planted.ts");\n}\n',
    "a dynamic import of pool in auth",
    "auth/planted-dynamic.ts",
  ),

  // The local PostgreSQL stays out of what production runs.
  imports("gateway/session", "../embedded/start-cluster.ts"),
  {
    rule: "no-restricted-imports",
    title: "embedded in gateway/compose.ts",
    path: "gateway/compose.ts",
    text: 'export { startCluster } from "./embedded/start-cluster.ts";\n',
  },
  {
    rule: "no-restricted-imports",
    title: "embedded in gateway/main.ts",
    path: "gateway/main.ts",
    text: 'export { startCluster } from "./embedded/start-cluster.ts";\n',
    isAllowed: true,
  },

  // A package has one home.
  ...PACKAGES.flatMap(packagePlants),
  allows("auth/jwt", "jose/jwt/verify"),
  allows("gateway/config", "@sinclair/typebox/value"),
  allows("pool/wire", "node:crypto"),
  allows("gateway/config", "node:fs/promises"),

  // Sockets, HTTP servers and SQL clients have one home too.
  imports("pool/wire", "bun:ffi"),
  imports("gateway/postgres", "bun:ffi"),
  allows("pool/transport", "bun:ffi"),
  calls("pool/backend", LISTEN),
  calls("gateway/postgres", LISTEN),
  calls("pool/transport", LISTEN, true),
  calls("pool/backend", CONNECT),
  calls("pool/transport", CONNECT, true),
  calls("gateway/postgres", SERVE),
  calls("pool/transport", SERVE),
  calls("gateway/http", SERVE, true),
  calls("gateway/http", LISTEN),
  calls("gateway/session", "new Bun.SQL('')"),
  calls("gateway/embedded", "new Bun.SQL('')", true),
  calls("test/support", LISTEN, true),
  {
    rule: "no-restricted-properties",
    title: "upgradeTLS in gateway/postgres",
    path: "gateway/postgres/planted-tls.ts",
    text: "export function planted(socket: { upgradeTLS(): void }): void {\n  socket.upgradeTLS();\n}\n",
  },
  {
    rule: "no-restricted-properties",
    title: "upgradeTLS in pool/transport",
    path: "pool/transport/planted-tls.ts",
    text: "export function planted(socket: { upgradeTLS(): void }): void {\n  socket.upgradeTLS();\n}\n",
    isAllowed: true,
  },
  {
    rule: "no-restricted-properties",
    title: "listen taken out of Bun",
    path: "pool/backend/planted-destructured.ts",
    text: "const { listen } = Bun;\n\nexport const copy: unknown = listen;\n",
  },
  importText(
    'import { listen } from "bun";\n\nexport const copy: unknown = listen;\n',
    "listen by name in pool/backend",
    "pool/backend/planted-listen.ts",
  ),
  importText(
    'import { SQL } from "bun";\n\nexport const copy: unknown = SQL;\n',
    "SQL by name in gateway/session",
    "gateway/session/planted-sql.ts",
  ),
  importText(
    'import { createServer } from "node:net";\n\nexport const copy: unknown = createServer;\n',
    "a node:net server in gateway/postgres",
    "gateway/postgres/planted-net.ts",
  ),
  {
    rule: "no-restricted-imports",
    title: "isIP of node:net in gateway/postgres",
    path: "gateway/postgres/planted-is-ip.ts",
    text: 'import { isIP } from "node:net";\n\nexport const copy: unknown = isIP;\n',
    isAllowed: true,
  },
];

/** A function of `lines` lines, in a folder where the limit holds. */
function longFunction(lines: number): string {
  const body = Array.from({ length: lines - 2 }, () => "  count++;\n").join("");
  return `export let count = 0;\n\nexport function planted(): void {\n${body}}\n`;
}

function longFile(lines: number): string {
  return "// A line.\n".repeat(lines - 1) + "export const planted = 1;\n";
}

function style(rule: string, path: string, text: string, isAllowed?: true): Plant {
  return { rule, title: path, path, text, ...(isAllowed === true ? { isAllowed } : {}) };
}

const REJECTION = "export const later = (): Promise<void> => Promise.reject(new Error());\n";

export const STYLE: readonly Plant[] = [
  style("max-lines", "pool/style/lines-401.ts", longFile(401)),
  style("max-lines", "pool/style/lines-400.ts", longFile(400), true),
  style("max-lines", "test/unit/pool/lines-401.ts", longFile(401)),
  style("max-lines-per-function", "pool/style/function-71.ts", longFunction(71)),
  style("max-lines-per-function", "pool/style/function-70.ts", longFunction(70), true),
  style("max-lines-per-function", "test/unit/pool/function-71.ts", longFunction(71), true),
  style("filename-case", "pool/style/camelCase.ts", "export const planted = 1;\n"),
  style(
    "no-warning-comments",
    "pool/style/to-do.ts",
    "// TODO: later.\nexport const planted = 1;\n",
  ),
  style("no-explicit-any", "pool/style/any.ts", "export const planted: any = 1;\n"),
  style(
    "no-non-null-assertion",
    "pool/style/non-null.ts",
    "export const planted = (list: string[]): string => list[0]!;\n",
  ),
  style(
    "no-unsafe-type-assertion",
    "pool/style/lying-cast.ts",
    "export const planted = (value: unknown): string => value as string;\n",
  ),
  style(
    "ban-ts-comment",
    "pool/style/ignored-type.ts",
    "// @ts-ignore: because the checker is wrong here\nexport const planted: number = '';\n",
  ),
  style(
    "ban-ts-comment",
    "pool/style/unexplained-type.ts",
    "// @ts-expect-error\nexport const planted: number = '';\n",
  ),
  style(
    "explicit-module-boundary-types",
    "pool/style/untyped-export.ts",
    "export function planted() {\n  return 1;\n}\n",
  ),
  style(
    "explicit-module-boundary-types",
    "gateway/http/untyped-export.ts",
    "export function planted() {\n  return 1;\n}\n",
    true,
  ),
  style(
    "consistent-type-imports",
    "pool/style/value-import.ts",
    'import { Planted } from "./planted.ts";\n\nexport type Copy = Planted;\n',
  ),
  style("no-floating-promises", "pool/style/floating.ts", `${REJECTION}\nlater();\n`),
  style(
    "no-misused-promises",
    "pool/style/misused.ts",
    `${REJECTION}\nif (later()) process.exit();\n`,
  ),
  style(
    "only-throw-error",
    "pool/style/thrown-text.ts",
    "export function planted(): never {\n  throw 'text';\n}\n",
  ),
  style(
    "switch-exhaustiveness-check",
    "pool/style/open-switch.ts",
    "export function planted(word: 'a' | 'b'): void {\n  switch (word) {\n    case 'a':\n  }\n}\n",
  ),
  {
    rule: "no-cycle",
    title: "a cycle through a room's alias",
    path: "test/cycle/first.ts",
    text: 'import { second } from "#test/cycle/second.ts";\n\nexport const first = (): number => second();\n',
    others: {
      "test/cycle/second.ts":
        'import { first } from "./first.ts";\n\nexport const second = (): number => first();\n',
    },
  },
];
