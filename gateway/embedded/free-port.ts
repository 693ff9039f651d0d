// Finds TCP ports of 127.0.0.1 for the local servers.
import { createServer } from "node:net";
import { ClusterError } from "./cluster-error.ts";

/** How many ports from the first one on are tried when the caller names the first. */
const PORT_SPAN = 100;

// Below 32768, where Linux hands out ports to outgoing connections: a port taken from that range
// could be lost to any client while its server is down.
const RANDOM_PORT_FIRST = 20_000;
const RANDOM_PORT_COUNT = 12_000;
const RANDOM_ATTEMPTS = 100;

/**
 * A port nobody listens on and that is not in `taken`: the first free one from `from` on, or a
 * random one, so that clusters that start at the same time seldom meet. The caller retries when
 * the port is lost between this look and its own bind.
 */
export async function findFreePort(
  from: number | undefined,
  taken: ReadonlySet<number>,
): Promise<number> {
  const attempts = from === undefined ? RANDOM_ATTEMPTS : PORT_SPAN;
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port =
      from === undefined
        ? RANDOM_PORT_FIRST + Math.floor(Math.random() * RANDOM_PORT_COUNT)
        : from + attempt;
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  throw new ClusterError(`no free port on 127.0.0.1 in ${attempts} attempts`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ host: "127.0.0.1", port, exclusive: true }, () =>
      probe.close(() => resolve(true)),
    );
  });
}
