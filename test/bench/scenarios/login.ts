// Logins per second over the wire: SCRAM, a JWT, and each of them inside TLS. pgbench -C connects anew for each transaction.
import { type BenchDatabase, startBenchDatabase } from "../bench-database.ts";
import { hasPgbouncer, PGBOUNCER_MISSING, startPgbouncer } from "../contenders/pgbouncer.ts";
import { startWalgate } from "../contenders/walgate.ts";
import { directEndpoint, type Endpoint } from "../endpoint.ts";
import { runLogins } from "../pgbench.ts";
import type { Bench, Scenario } from "../scenario.ts";
import { POOL_SIZE } from "./wire.ts";

const CLIENT_COUNT = 16;
const CLIENTS_MAX = 1_000;

interface Peer {
  readonly name: string;
  readonly endpoint: Endpoint;
  readonly pid?: number;
}

export const login: Scenario = {
  columns: [
    { figure: "tps", title: "logins/s", digits: 0 },
    { figure: "cpuUs", title: "CPU µs/login", digits: 0 },
  ],
  async run(bench) {
    await using stack = new AsyncDisposableStack();
    const database = stack.use(await startBenchDatabase());
    const options = { poolSize: POOL_SIZE, clientsMax: CLIENTS_MAX, hasTls: true };
    const walgate = stack.use(await startWalgate(database, options));
    const again = stack.use(await startWalgate(database, options));
    const bouncer = await pgbouncer(bench, database, stack);
    bench.note(
      "Clients pay for SCRAM too, on the same processors; the CPU column does not show it.",
    );
    const control = { subject: "walgate", again: "walgate again" };
    const compare = async (name: string, peers: readonly Peer[]): Promise<void> => {
      const run = (peer: Peer) => () =>
        runLogins({ ...peer, clientCount: CLIENT_COUNT, mode: "simple", seconds: bench.seconds });
      const contenders = peers.map((peer) => ({ name: peer.name, run: run(peer) }));
      await bench.compare({ name, contenders, control, bars: [] });
    };
    const peers: readonly Peer[] = [
      { name: "direct", endpoint: directEndpoint(database.cluster) },
      ...bouncer,
      { name: "walgate", ...walgate },
      { name: "walgate again", ...again },
    ];
    await compare("SCRAM", peers);
    const overTls = (peer: Peer): Peer => ({
      ...peer,
      endpoint: { ...peer.endpoint, sslmode: "require" },
    });
    await compare("SCRAM over TLS", peers.filter(({ name }) => name !== "direct").map(overTls));
    // A user without a rule of its own, so that the token alone decides.
    const byToken = (peer: Peer): Peer => ({
      ...peer,
      endpoint: { ...peer.endpoint, user: "bearer", password: walgate.token },
    });
    const gateways = peers.filter(({ name }) => name.startsWith("walgate")).map(byToken);
    await compare("JWT", gateways);
    await compare("JWT over TLS", gateways.map(overTls));
  },
};

async function pgbouncer(
  bench: Bench,
  database: BenchDatabase,
  stack: AsyncDisposableStack,
): Promise<readonly Peer[]> {
  if (!hasPgbouncer()) {
    bench.note(`not measured: ${PGBOUNCER_MISSING}`);
    return [];
  }
  const server = stack.use(
    await startPgbouncer(database, {
      poolMode: "transaction",
      poolSize: POOL_SIZE,
      clientsMax: CLIENTS_MAX,
      hasTls: true,
    }),
  );
  return [{ name: "pgbouncer", ...server }];
}
