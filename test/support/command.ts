// Runs client programs that a machine may not have, for tests that say so when they are skipped.

export interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

export interface RunningCommand {
  readonly pid: number;
  /** SIGINT, as Ctrl-C in a terminal. */
  interrupt(): void;
  kill(): void;
  readonly result: Promise<CommandResult>;
}

/** Whether the program is on the path; says on the console what is skipped when it is not. */
export function hasCommand(name: string): boolean {
  const isThere = Bun.which(name) !== null;
  if (!isThere) console.warn(`skipped: ${name} is not installed, its tests did not run`);
  return isThere;
}

export function startCommand(
  words: readonly string[],
  options: { readonly stdin?: string; readonly env?: Readonly<Record<string, string>> } = {},
): RunningCommand {
  const child = Bun.spawn([...words], {
    stdin: new TextEncoder().encode(options.stdin ?? ""),
    stdout: "pipe",
    stderr: "pipe",
    env: { ...Bun.env, LC_ALL: "C", PGCONNECT_TIMEOUT: "10", ...options.env },
  });
  const result = Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]).then(([stdout, stderr, exitCode]) => ({ stdout, stderr, exitCode }));
  return {
    pid: child.pid,
    interrupt: () => child.kill("SIGINT"),
    kill: () => child.kill("SIGKILL"),
    result,
  };
}

/** Runs the program to its end. */
export function runCommand(...args: Parameters<typeof startCommand>): Promise<CommandResult> {
  return startCommand(...args).result;
}
