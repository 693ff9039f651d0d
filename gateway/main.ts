// The command line: reads arguments and configuration, starts and stops the gateway, and chooses the exit code.
import { parseArgs } from "node:util";
import packageJson from "../package.json" with { type: "json" };
import type { Gateway } from "./compose.ts";
import { loadConfig, type LoadResult } from "./config/load.ts";
import { readTextFile } from "./config/read-text-file.ts";
import type { Config } from "./config/schema.ts";
import { formatAddress } from "./config/values.ts";
import { createLogger, type Logger } from "./telemetry/logger.ts";

const EXIT_OK = 0;
const EXIT_FAILED = 1;
/** A wrong command line or configuration: nothing was started. */
const EXIT_MISUSE = 2;

/** How much longer than shutdown_timeout, its own deadline, an orderly stop may take before we leave it. */
const STOP_GRACE_MS = 5000;

const CONFIG_FILE_DEFAULT = "walgate.toml";

const HELP = `walgate ${packageJson.version}: a serverless-edge gateway in front of PostgreSQL

Usage:
  walgate serve [--config FILE]   start the gateway
  walgate check [--config FILE]   check a configuration without starting anything
  walgate dev                     start a local PostgreSQL cluster and the gateway in front of it

Options:
  -c, --config FILE   the configuration, default ${CONFIG_FILE_DEFAULT}
  -h, --help          print this text
  -v, --version       print the version

Exit codes: 0 an orderly end, 1 a failed start or stop, 2 a wrong command line or configuration.
`;

function writeError(line: string): void {
  process.stderr.write(`walgate: ${line}\n`);
}

function loadFrom(path: string): Promise<LoadResult> {
  return loadConfig(path, process.env, readTextFile);
}

async function check(path: string): Promise<number> {
  const result = await loadFrom(path);
  if (!result.ok) {
    writeError(result.error.message);
    return EXIT_MISUSE;
  }
  for (const warning of result.warnings) process.stdout.write(`warning: ${warning}\n`);
  process.stdout.write("ok\n");
  return EXIT_OK;
}

/** The first signal asks for an orderly stop; the next ones find the handler gone and end the process at once. */
function nextStopSignal(): Promise<NodeJS.Signals> {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  const onSignal = (signal: NodeJS.Signals): void => {
    for (const name of signals) process.off(name, onSignal);
    resolve(signal);
  };
  for (const name of signals) process.on(name, onSignal);
  return promise;
}

async function stopWithin(stop: () => Promise<void>, deadlineMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), deadlineMs);
  try {
    return await Promise.race([stop().then(() => true), promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function openGateway(config: Config, log: Logger): Promise<Gateway | undefined> {
  try {
    // Loaded here, since checking a configuration needs none of what the gateway needs.
    const { startGateway } = await import("./compose.ts");
    return await startGateway({ config, log });
  } catch (error) {
    // A failure of the system or one of ours says what to do; one without a code is a bug.
    if (!(error instanceof Error && "code" in error)) log.error("start failed", { error });
    writeError(startFailureText(error, config));
    return undefined;
  }
}

async function closeGateway(gateway: Gateway, config: Config, log: Logger): Promise<number> {
  const deadlineMs = config.gateway.shutdown_timeout * 1000 + STOP_GRACE_MS;
  try {
    if (await stopWithin(() => gateway.stop(), deadlineMs)) return EXIT_OK;
    writeError("the gateway did not stop in time");
  } catch (error) {
    log.error("stop failed", { error });
    writeError("the gateway did not stop in order");
  }
  return EXIT_FAILED;
}

async function serve(path: string): Promise<number> {
  const stopSignal = nextStopSignal();
  const result = await loadFrom(path);
  if (!result.ok) {
    writeError(result.error.message);
    return EXIT_MISUSE;
  }
  const { config, warnings } = result;
  const log = createLogger({
    level: config.gateway.log_level,
    sink: (line) => process.stderr.write(line),
    nowMs: Date.now,
  });
  for (const warning of warnings) log.warning(warning);
  const gateway = await openGateway(config, log);
  if (gateway === undefined) return EXIT_FAILED;
  log.info("gateway started", { http: gateway.http, postgres: gateway.postgres });
  log.info("gateway stops", { signal: await stopSignal });
  return closeGateway(gateway, config, log);
}

function startFailureText(error: unknown, { gateway }: Config): string {
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== "EADDRINUSE") return `cannot start: ${text}`;
  return `cannot start: an address is in use already (${describeDoors(gateway)})`;
}

function describeDoors({ http, postgres }: Config["gateway"]): string {
  const doors: string[] = [];
  if (http !== undefined) doors.push(`http ${formatAddress(http)}`);
  if (postgres !== undefined) doors.push(`postgres ${formatAddress(postgres)}`);
  return doors.join(", ");
}

async function dev(args: readonly string[]): Promise<number> {
  const { runDev } = await import("./dev.ts");
  return runDev(args);
}

interface CommandLine {
  readonly command: string | undefined;
  readonly extra: readonly string[];
  readonly config: string;
  readonly help: boolean;
  readonly version: boolean;
}

function parseCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      config: { type: "string", short: "c", default: CONFIG_FILE_DEFAULT },
      help: { type: "boolean", short: "h", default: false },
      version: { type: "boolean", short: "v", default: false },
    },
  });
  const [command, ...extra] = positionals;
  return { command, extra, ...values };
}

function misuse(text: string): number {
  writeError(text);
  process.stderr.write(`\n${HELP}`);
  return EXIT_MISUSE;
}

async function main(args: readonly string[]): Promise<number> {
  // Its arguments are its own.
  if (args[0] === "dev") return dev(args.slice(1));
  let commandLine: CommandLine;
  try {
    commandLine = parseCommandLine(args);
  } catch (error) {
    if (error instanceof TypeError) return misuse(error.message);
    throw error;
  }
  const { command, extra, config, help, version } = commandLine;
  if (help || version) {
    process.stdout.write(help ? HELP : `${packageJson.version}\n`);
    return EXIT_OK;
  }
  if (command === undefined) return misuse("no command");
  if (extra.length > 0) return misuse("more than one command");
  if (command === "serve") return serve(config);
  if (command === "check") return check(config);
  return misuse(`unknown command ${JSON.stringify(command)}`);
}

process.exit(await main(process.argv.slice(2)));
