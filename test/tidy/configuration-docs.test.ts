// The generated document is what the schema says, and it and the example leave out no section.
import { expect, test } from "bun:test";
import { configurationDocument } from "#gateway/config/documentation.ts";

test("docs/configuration.md is what scripts/docs.ts writes", async () => {
  const committed = await Bun.file(new URL("../../docs/configuration.md", import.meta.url)).text();

  expect(committed).toBe(configurationDocument());
});

test("the document has every section of the schema in its order", () => {
  const headings = [...configurationDocument().matchAll(/^## `(.*)`$/gm)].map(
    ([, heading]) => heading,
  );

  expect(headings).toEqual([
    "[gateway]",
    "[gateway.tls]",
    "[http]",
    "[tokens]",
    "[[tokens.keys]]",
    "[pool]",
    "[databases.NAME]",
    "[[databases.NAME.servers]]",
    "[profiles.NAME]",
    "[auth]",
    "[[auth.jwt]]",
    "[[auth.rules]]",
    "[[auth.users]]",
  ]);
});

test("every row has a value, a default and a meaning that is a sentence", () => {
  const rows = configurationDocument()
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| Key") && !line.startsWith("| -"))
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));

  expect(rows.length).toBeGreaterThan(60);
  const incomplete = rows.filter(
    ([, key = "", value = "", missing = "", meaning = ""]) =>
      key === "" ||
      value === "" ||
      value === "undefined" ||
      missing === "" ||
      !/^["A-Z].*\.$/.test(meaning),
  );
  expect(incomplete).toEqual([]);
});
