// Opens many wire clients and keeps them idle, as a process of its own. The plan comes on stdin; says `open` when all are in, and ends when it is killed.
import { errorText, RawClient } from "#test/support/raw-client.ts";

export interface IdlePlan {
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly count: number;
}

export type IdleMark =
  { readonly mark: "open" } | { readonly mark: "failed"; readonly reason: string };

/** Logins at a time: below any listener's backlog. */
const PARALLEL = 64;

async function open({ port, user, password, count }: IdlePlan): Promise<IdleMark> {
  let left = count;
  let reason: string | undefined;
  const work = async (): Promise<void> => {
    while (left-- > 0 && reason === undefined) {
      const client = await RawClient.open(port);
      const refusal = await client.authenticate({ port, user, password });
      if (refusal !== undefined) reason ??= errorText(refusal);
    }
  };
  try {
    await Promise.all(Array.from({ length: PARALLEL }, work));
  } catch (error) {
    reason ??= String(error);
  }
  return reason === undefined ? { mark: "open" } : { mark: "failed", reason };
}

if (import.meta.main) {
  const plan = (await Bun.stdin.json()) as IdlePlan;
  process.stdout.write(`${JSON.stringify(await open(plan))}\n`);
  // Held until the bench is done with them; the sockets keep the process alive.
}
