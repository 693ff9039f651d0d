import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTextFile } from "#gateway/config/read-text-file.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "walgate-read-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function fileOf(content: string | Uint8Array): Promise<string> {
  const path = join(folder, "file");
  await writeFile(path, content);
  return path;
}

function failureOf(path: string, bytesMax?: number): Promise<unknown> {
  return readTextFile(path, bytesMax).then(
    () => "no failure",
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );
}

test("a file is read up to the limit and refused past it", async () => {
  const path = await fileOf("äbc");

  expect(await readTextFile(path, 4)).toBe("äbc");
  expect(await failureOf(path, 3)).toBe("EFBIG");
});

test("a device without end is refused", async () => {
  expect(await failureOf("/dev/zero", 1024)).toBe("EFBIG");
});

test("an empty file is empty text", async () => {
  expect(await readTextFile(await fileOf(""))).toBe("");
});

test("bytes that are not UTF-8 are refused", async () => {
  expect(await failureOf(await fileOf(Uint8Array.of(0x61, 0xff)))).toBe("EILSEQ");
});

test("a missing file and a folder are told apart", async () => {
  expect(await failureOf(join(folder, "missing"))).toBe("ENOENT");
  expect(await failureOf(folder)).toBe("EISDIR");
});
