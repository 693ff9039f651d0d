// Starts a server of the bench as its own process, so that its CPU and memory can be read apart, and ends it again.
import type { PostgresAccount } from "#gateway/embedded/postgres-account.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";

/** A cold start takes well under a second on an idle machine. */
const START_TIMEOUT_MS = 20_000;
/** After SIGTERM; then SIGKILL. */
const STOP_TIMEOUT_MS = 10_000;
/** Of what it said, for the message when it dies. */
const OUTPUT_CHARACTERS_MAX = 2_000;

export interface ChildOptions {
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly account?: PostgresAccount;
  /** Asked until it says true. */
  readonly isReady: () => Promise<boolean>;
}

export interface ChildServer extends AsyncDisposable {
  readonly pid: number;
}

export async function startChild(options: ChildOptions): Promise<ChildServer> {
  const name = options.words.slice(0, 2).join(" ");
  const child = Bun.spawn([...options.words], {
    ...options.account,
    env: { ...Bun.env, ...options.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let output = "";
  const keep = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const bytes of stream) {
      output = (output + decoder.decode(bytes, { stream: true })).slice(-OUTPUT_CHARACTERS_MAX);
    }
  };
  const read = Promise.all([keep(child.stdout), keep(child.stderr)]);
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await child.exited;
    clearTimeout(timer);
    await read;
  };
  try {
    await pollUntil(
      async () => {
        if (child.exitCode !== null) throw new Error(`${name} ended: ${output}`);
        return options.isReady();
      },
      START_TIMEOUT_MS,
      `the start of ${name}`,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid: child.pid, [Symbol.asyncDispose]: stop };
}

/** Whether somebody accepts connections there. */
export async function isListening(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    // Refused: not yet.
    return false;
  }
}
