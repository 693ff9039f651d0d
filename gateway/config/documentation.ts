// Writes docs/configuration.md from the schema, in the words that the error messages use.
import type { TSchema } from "@sinclair/typebox";
import { configSchema } from "./schema.ts";
import { poolOverrides } from "./sections/pool-section.ts";

type Row = readonly [key: string, value: string, whenMissing: string, meaning: string];

interface Section {
  /** As it stands in the file: [pool] or [[auth.rules]]. */
  readonly heading: string;
  readonly description: string;
  readonly rows: readonly Row[];
}

const INTRODUCTION = `# Configuration

This file is made from the schema by \`scripts/docs.ts\`; change the schema instead.

\`walgate serve --config walgate.toml\` reads one TOML file; \`walgate check --config walgate.toml\` checks it
without starting anything. A mistake is reported as one line with the path of its key, and the exit code is 2.

- An unknown key is a mistake, and so is a key in the wrong section.
- Keys that PgBouncer has keep its names. Durations are in seconds and may have fractions. Sizes are bytes, or text with
  KB, MB or GB (powers of 1024).
- The keys of \`[pool]\` may also stand in a database or a profile: the profile wins over the database, the database over
  \`[pool]\`.
- The environment and other files are read only where a key ends in \`_env\` or \`_file\`, and for \`sslrootcert\`. Files are
  relative to the folder of the configuration. One line feed at the end of a secret's file is not part of the secret.
`;

const COLUMNS: Row = ["Key", "Value", "Default", "Meaning"];

function variants(schema: TSchema): readonly TSchema[] {
  return schema["anyOf"] ?? [schema];
}

/** The table inside a key's value, and how its heading is written; undefined for plain values. */
function innerTable(
  schema: TSchema,
): { readonly table: TSchema; readonly isList: boolean; readonly suffix: string } | undefined {
  if (schema["properties"] !== undefined) return { table: schema, isList: false, suffix: "" };
  const named = Object.values<TSchema>(schema["patternProperties"] ?? {})[0];
  if (named?.["properties"] !== undefined) return { table: named, isList: false, suffix: ".NAME" };
  const items: TSchema | undefined = schema["items"];
  if (items === undefined) return undefined;
  const table = variants(items).find(({ properties }) => properties !== undefined);
  return table === undefined ? undefined : { table, isList: true, suffix: "" };
}

/** A list that also takes plain values has a row of its own besides its section. */
function hasRow(schema: TSchema): boolean {
  return innerTable(schema) === undefined || schema["items"]?.anyOf !== undefined;
}

function whenMissing(key: string, table: TSchema, schema: TSchema): string {
  if (schema["default"] !== undefined) return `\`${JSON.stringify(schema["default"])}\``;
  const required: readonly string[] = table["required"] ?? [];
  return required.includes(key) ? "required" : "none";
}

/** What a value may be; for lists and free tables, what their entries may be. */
function valueText(schema: TSchema): string {
  const items: TSchema | undefined = schema["items"];
  if (items !== undefined) return `an array, each ${String(items["expected"])}`;
  const named = Object.values<TSchema>(schema["patternProperties"] ?? {})[0];
  if (named !== undefined) return `a table, each ${String(named["expected"])}`;
  return String(schema["expected"]);
}

function rowsOf(table: TSchema): readonly Row[] {
  const rows: Row[] = [];
  let overridesPool = false;
  for (const [key, schema] of Object.entries<TSchema>(table["properties"] ?? {})) {
    if (Object.hasOwn(poolOverrides, key) && schema["default"] === undefined) {
      overridesPool = true;
    } else if (hasRow(schema)) {
      const description = String(schema["description"]);
      rows.push([`\`${key}\``, valueText(schema), whenMissing(key, table, schema), description]);
    }
  }
  if (overridesPool) {
    rows.push([
      "each key of `[pool]`",
      "as there",
      "that of the level below",
      "Overrides it here.",
    ]);
  }
  return rows;
}

function* sectionsOf(table: TSchema, path: string): Iterable<Section> {
  for (const [key, schema] of Object.entries<TSchema>(table["properties"] ?? {})) {
    const inner = innerTable(schema);
    if (inner === undefined) continue;
    const name = `${path === "" ? "" : `${path}.`}${key}${inner.suffix}`;
    const rows = rowsOf(inner.table);
    if (rows.length > 0) {
      yield {
        heading: inner.isList ? `[[${name}]]` : `[${name}]`,
        description: String(inner.table["description"]),
        rows,
      };
    }
    yield* sectionsOf(inner.table, name);
  }
}

/** Columns are padded as the formatter pads them, so that the file is stable under it. */
function formatTable(rows: readonly Row[]): string {
  const cells = [COLUMNS, ...rows].map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = COLUMNS.map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  const lines = cells.map(
    (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`,
  );
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [lines[0], rule, ...lines.slice(1)].join("\n");
}

/** The whole text of docs/configuration.md. */
export function configurationDocument(): string {
  const sections = [...sectionsOf(configSchema, "")].map(
    ({ heading, description, rows }) =>
      `## \`${heading}\`\n\n${description}\n\n${formatTable(rows)}\n`,
  );
  return [INTRODUCTION, ...sections].join("\n");
}
