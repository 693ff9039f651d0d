// Runs a load program of the bench in its own process: a plan on its stdin, JSON lines from its stdout.

/** Beyond what the plan itself takes. */
const GRACE_MS = 60_000;

export interface LoadProgram {
  /** Of this folder. */
  readonly file: string;
  /** What the file's own plan type says. */
  readonly plan: object;
  readonly durationMs: number;
}

/** Calls `onLine` with each line as it comes. Throws when the program fails. */
export async function runLoadProgram(
  { file, plan, durationMs }: LoadProgram,
  onLine: (line: unknown) => void,
): Promise<void> {
  const words = [process.execPath, `${import.meta.dir}/${file}`];
  const child = Bun.spawn(words, {
    stdin: new TextEncoder().encode(JSON.stringify(plan)),
    stdout: "pipe",
    stderr: "pipe",
    timeout: durationMs + GRACE_MS,
  });
  const stderr = new Response(child.stderr).text();
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of child.stdout) {
    text += decoder.decode(bytes, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const line: unknown = JSON.parse(text.slice(0, end));
      text = text.slice(end + 1);
      onLine(line);
    }
  }
  if ((await child.exited) !== 0) throw new Error(`${file} failed: ${await stderr}`);
}

/** For ten thousand sockets. A shell raises its own limit and becomes the program; its exit code is not 0 where the machine forbids it. */
export function withFiles(files: number, words: readonly string[]): string[] {
  return ["sh", "-c", `ulimit -n ${files} && exec "$@"`, "sh", ...words];
}
