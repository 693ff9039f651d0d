// One postgres server process: started, stopped or killed by its launcher, and never left behind.
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { ClusterError } from "./cluster-error.ts";
import { pollUntil } from "./poll-until.ts";
import { postgresEnvironment, type PostgresAccount } from "./postgres-account.ts";
import { childPids, commandLine, isAlive } from "./process-table.ts";

/** PostgreSQL's own words for its shutdown modes. */
export type StopMode = "smart" | "fast" | "immediate";

const STOP_SIGNALS = { smart: "SIGTERM", fast: "SIGINT", immediate: "SIGQUIT" } as const;

/** A quiet machine needs 0.1 s; one with ten times its load was seen to need 5 s. */
const START_TIMEOUT_MS = 60_000;
/** After this a shutdown that clients hold up is made an immediate one. */
const STOP_TIMEOUT_MS = 10_000;
const LOG_TAIL_LINES = 8;

export interface ServerProcessOptions {
  readonly postgres: string;
  readonly dataFolder: string;
  readonly logPath: string;
  readonly account: PostgresAccount;
}

/** The port was taken by somebody else between the look and the bind. */
export class PortTakenError extends ClusterError {}

/** A server that may be started again after each end. */
export class ServerProcess {
  readonly #options: ServerProcessOptions;
  #child: Subprocess | undefined;

  constructor(options: ServerProcessOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && !hasEnded(this.#child);
  }

  /** Resolves once the server accepts connections. Throws PortTakenError or ClusterError. */
  async start(): Promise<void> {
    const { postgres, dataFolder, logPath, account } = this.#options;
    if (this.isRunning) throw new ClusterError(`the server in ${dataFolder} runs already`);
    const log = await open(logPath, "a", 0o600);
    const logStart = (await log.stat()).size;
    let child: Subprocess;
    try {
      child = Bun.spawn([...deathGuard(), postgres, "-D", dataFolder], {
        ...account,
        cwd: "/",
        env: postgresEnvironment(),
        // Ctrl-C in the terminal then reaches the launcher only, which stops replicas first.
        detached: true,
        stdin: "ignore",
        stdout: log.fd,
        stderr: log.fd,
      });
    } finally {
      await log.close();
    }
    this.#child = child;
    await pollUntil(
      async () => hasEnded(child) || (await isReady(dataFolder, child.pid)),
      START_TIMEOUT_MS,
      `start of the server in ${dataFolder}`,
    );
    if (!hasEnded(child)) return;
    const written = (await readFile(logPath)).subarray(logStart).toString();
    const tail = written.trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
    const Kind = written.includes("Address already in use") ? PortTakenError : ClusterError;
    throw new Kind(`the server in ${dataFolder} ended while starting:\n${tail}`);
  }

  /** Ends the server in PostgreSQL's way; resolves once it is gone. */
  async stop(mode: StopMode = "fast"): Promise<void> {
    const child = this.#child;
    if (child === undefined || hasEnded(child)) return;
    child.kill(STOP_SIGNALS[mode]);
    const late = setTimeout(() => child.kill(STOP_SIGNALS.immediate), STOP_TIMEOUT_MS);
    try {
      await child.exited;
    } finally {
      clearTimeout(late);
    }
  }

  /**
   * A crash: no process of the server gets to say a word to its clients. The postmaster is frozen
   * first, since it would answer the death of one child by shutting down the others in order.
   */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || hasEnded(child)) return;
    child.kill("SIGSTOP");
    const pids = await childPids(child.pid);
    child.kill("SIGKILL");
    for (const pid of pids) signalIfAlive(pid, "SIGKILL");
    await child.exited;
    // A restart is refused while a child still holds the shared memory.
    await pollUntil(
      async () => !(await Promise.all(pids.map(isAlive))).includes(true),
      STOP_TIMEOUT_MS,
      `end of the processes of ${this.#options.dataFolder}`,
    );
  }
}

/** Stops a server that an earlier launcher left behind in this folder. */
export async function stopLeftover(dataFolder: string): Promise<void> {
  const state = await readPidFile(dataFolder);
  if (state === undefined) return;
  const isOurs = async (): Promise<boolean> => (await commandLine(state.pid)).includes(dataFolder);
  if (!(await isOurs())) return;
  signalIfAlive(state.pid, STOP_SIGNALS.fast);
  try {
    await pollUntil(async () => !(await isOurs()), STOP_TIMEOUT_MS, "end of a leftover server");
  } catch {
    // Its clients hold it up: the immediate mode does not wait for them.
    signalIfAlive(state.pid, STOP_SIGNALS.immediate);
    await pollUntil(async () => !(await isOurs()), STOP_TIMEOUT_MS, "end of a leftover server");
  }
}

function hasEnded(child: Subprocess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Should the launcher be killed, the kernel itself asks postgres for a fast shutdown. */
function deathGuard(): string[] {
  const setpriv = process.platform === "linux" ? Bun.which("setpriv") : null;
  return setpriv === null ? [] : [setpriv, "--pdeathsig", "INT", "--"];
}

async function isReady(dataFolder: string, pid: number): Promise<boolean> {
  const state = await readPidFile(dataFolder);
  return state !== undefined && state.pid === pid && state.isReady;
}

/** postmaster.pid: line 1 is the pid, line 8 says "ready" once connections are accepted. */
async function readPidFile(
  dataFolder: string,
): Promise<{ pid: number; isReady: boolean } | undefined> {
  const file = Bun.file(join(dataFolder, "postmaster.pid"));
  if (!(await file.exists())) return undefined;
  // It may go between the look and the read, when the server ends.
  const lines = (await file.text().catch(() => "")).split("\n");
  const pid = Number(lines[0]);
  return pid > 0 ? { pid, isReady: lines[7]?.trim() === "ready" } : undefined;
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
