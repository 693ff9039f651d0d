#!/usr/bin/env node
// Starts walgate under the one version of Bun that it is made for; itself it needs only Node.js 20.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = new URL("../package.json", import.meta.url);
const MAIN = fileURLToPath(new URL("../gateway/main.ts", import.meta.url));
const FORWARDED_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];
/** A cold npm cache downloads 40 MB. */
const DOWNLOAD_TIMEOUT_MS = 300_000;
const VERSION_TIMEOUT_MS = 10_000;

/** The version's one home is `engines.bun`; the scripts of package.json repeat it (a test compares). */
const { engines } = JSON.parse(readFileSync(PACKAGE, "utf8"));

const bun = findBun(engines.bun);
if (bun === undefined) {
  console.error(`walgate needs Bun ${engines.bun}, and could neither find nor download it`);
  process.exit(1);
}
run(bun);

/** The first of: this process itself, the package `bun` beside us, `bun` on PATH, npm's cache. */
function findBun(version) {
  if (process.versions.bun === version) return process.execPath;
  const installed = [packagedBun(), "bun"].find((path) => versionOf(path) === version);
  if (installed !== undefined) return installed;
  const downloaded = downloadBun(version);
  return versionOf(downloaded) === version ? downloaded : undefined;
}

function packagedBun() {
  try {
    const manifest = createRequire(import.meta.url).resolve("bun/package.json");
    // The package uses this name on every system.
    return join(dirname(manifest), "bin", "bun.exe");
  } catch {
    // Not installed beside us, which is the usual case.
    return undefined;
  }
}

/** Asked of the program itself: where install scripts are off, a placeholder lies in its place. */
function versionOf(path) {
  if (path === undefined || path === "") return undefined;
  const { status, stdout } = spawnSync(path, ["--version"], {
    encoding: "utf8",
    timeout: VERSION_TIMEOUT_MS,
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** npx keeps what it downloaded; an exact version then needs no network, if npx is told not to ask first. */
function downloadBun(version) {
  const options = ["--yes", "--prefer-offline", "--ignore-scripts=false", "--allow-scripts=bun"];
  const { stdout } = spawnSync("npx", [...options, `bun@${version}`, "-p", "process.execPath"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: DOWNLOAD_TIMEOUT_MS,
  });
  return stdout?.trim();
}

function run(path) {
  const child = spawn(path, ["--no-orphans", MAIN, ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of FORWARDED_SIGNALS) {
    process.on(signal, () => {
      // Ctrl-C in a terminal has reached the child already; twice would look like impatience.
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      child.kill(signal);
    });
  }
  child.on("error", (error) => {
    console.error(`walgate could not start ${path}: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const forwarded of FORWARDED_SIGNALS) process.removeAllListeners(forwarded);
    // Ends as the child did, so that a supervisor sees the signal.
    process.kill(process.pid, signal);
  });
}
