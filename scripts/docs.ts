// Writes the generated documents; with --check it only compares them and fails when one differs.
import { configurationDocument } from "#gateway/config/documentation.ts";

const DOCUMENTS: readonly (readonly [path: string, text: string])[] = [
  ["docs/configuration.md", configurationDocument()],
];

async function differs(file: Bun.BunFile, text: string): Promise<boolean> {
  return !(await file.exists()) || (await file.text()) !== text;
}

let exitCode = 0;
for (const [path, text] of DOCUMENTS) {
  const file = Bun.file(new URL(`../${path}`, import.meta.url));
  if (!(await differs(file, text))) continue;
  if (process.argv.includes("--check")) {
    process.stderr.write(`${path} is not what the schema says: run scripts/docs.ts\n`);
    exitCode = 1;
  } else {
    await Bun.write(file, text);
    process.stdout.write(`wrote ${path}\n`);
  }
}
process.exit(exitCode);
