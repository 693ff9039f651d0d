// bin/walgate.mjs around a stand-in for gateway/main.ts: arguments, exit code and signals pass through.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";

const ROOT = join(import.meta.dir, "../..");

const STAND_IN = `
process.on("SIGTERM", () => process.exit(7));
process.on("SIGHUP", () => console.log("reload"));
console.log(JSON.stringify(process.argv.slice(2)));
if (process.argv[2] === "end") process.exit(3);
if (process.argv[2] === "crash") process.kill(process.pid, "SIGKILL");
setInterval(() => undefined, 60_000);
`;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "walgate-command-"));
  await mkdir(join(folder, "bin"));
  for (const file of ["package.json", "bin/walgate.mjs"]) {
    await copyFile(join(ROOT, file), join(folder, file));
  }
  await Bun.write(join(folder, "gateway/main.ts"), STAND_IN);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test("arguments go in and the exit code comes out", async () => {
  await using command = walgate("end", "--flag", "two words");

  expect(await new Response(command.stdout).text()).toBe('["end","--flag","two words"]\n');
  expect(await command.exited).toBe(3);
});

test("signals are handed on, and the child's answer to them is the command's", async () => {
  await using command = walgate("wait");
  const output = command.stdout.getReader();

  expect(await nextText(output)).toBe('["wait"]\n');
  command.kill("SIGHUP");
  expect(await nextText(output)).toBe("reload\n");
  command.kill("SIGTERM");
  expect(await command.exited).toBe(7);
});

test("a child that was killed ends the command by the same signal", async () => {
  await using command = walgate("crash");

  await command.exited;
  expect(command.signalCode).toBe("SIGKILL");
});

function walgate(...options: string[]): Subprocess<"ignore", "pipe", "inherit"> {
  return Bun.spawn(["node", join(folder, "bin/walgate.mjs"), ...options], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
}

async function nextText(reader: {
  read(): Promise<{ value?: Uint8Array | undefined }>;
}): Promise<string> {
  return new TextDecoder().decode((await reader.read()).value);
}
