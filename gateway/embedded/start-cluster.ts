// Starts a local PostgreSQL primary with streaming replicas, for `walgate dev` and for tests.
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { runSql } from "./admin-sql.ts";
import { caughtUp } from "./caught-up.ts";
import { ClusterError } from "./cluster-error.ts";
import type { Cluster, ClusterOptions, ServerName, ServerNode } from "./cluster.ts";
import { loadCredentials, type ClusterCredentials } from "./credentials.ts";
import { dataFolder, openHome, prepareDataFolders, SETTINGS_FILE } from "./data-folders.ts";
import { findFreePort } from "./free-port.ts";
import { acquireLauncherLock } from "./launcher-lock.ts";
import { findPostgresAccount, writeForAccount, type PostgresAccount } from "./postgres-account.ts";
import { findPostgresBinaries } from "./postgres-binaries.ts";
import { provision } from "./provision.ts";
import { PortTakenError, ServerProcess } from "./server-process.ts";
import { serverSettings } from "./server-settings.ts";

const DEFAULT_DATABASE = "app";

/** How often a server whose port was snatched away gets another one. */
const PORT_ATTEMPTS = 5;

interface Server {
  readonly name: ServerName;
  readonly process: ServerProcess;
  port: number;
}

/** The launcher's view: everything needed to write a server's settings and start it. */
interface Launch {
  readonly home: string;
  readonly account: PostgresAccount;
  readonly credentials: ClusterCredentials;
  readonly options: ClusterOptions;
  readonly servers: readonly Server[];
}

/** Starts the cluster, with the data of the last start when there is some. Throws ClusterError. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const began = performance.now();
  const account = await findPostgresAccount();
  const home = options.home ?? defaultHome(account);
  await openHome(home, account);
  const releaseLock = await acquireLauncherLock(join(home, "launcher.pid"));
  try {
    const binaries = await findPostgresBinaries(account);
    const credentials = await loadCredentials(join(home, "credentials.json"));
    const names = serverNames(options.replicas ?? 2);
    await prepareDataFolders({ home, binaries, account, password: credentials.postgres, names });
    const servers = names.map((name): Server => ({
      name,
      port: 0,
      process: new ServerProcess({
        postgres: join(binaries, "bin", "postgres"),
        dataFolder: dataFolder(home, name),
        logPath: join(home, `${name}.log`),
        account,
      }),
    }));
    const launch: Launch = { home, account, credentials, options, servers };
    const cluster = toCluster(launch, releaseLock);
    await startAll(launch, cluster);
    const tookMs = Math.round(performance.now() - began);
    options.log?.(`PostgreSQL primary and ${names.length - 1} replicas ready after ${tookMs} ms`);
    return cluster;
  } catch (error) {
    await releaseLock();
    throw error;
  }
}

function serverNames(replicas: 0 | 1 | 2): ServerName[] {
  return (["primary", "replica1", "replica2"] as const).slice(0, replicas + 1);
}

/** Root's project may lie below a folder that the account cannot enter. */
function defaultHome(account: PostgresAccount): string {
  const folder = process.cwd();
  if (account === undefined) return join(folder, ".data", "postgres");
  const id = createHash("sha256").update(folder).digest("hex").slice(0, 12);
  return join("/var/tmp", `${basename(folder)}-postgres-${id}`);
}

async function startAll(launch: Launch, cluster: Cluster): Promise<void> {
  const [primary, ...replicas] = launch.servers;
  if (primary === undefined) return;
  try {
    await startServer(launch, primary);
    await provision({
      urlOf: (database) => cluster.primary.url("postgres", database),
      database: cluster.database,
      slots: replicas.map((replica) => replica.name),
      credentials: launch.credentials,
    });
    for (const replica of replicas) await startServer(launch, replica);
    await caughtUp(cluster);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Gives the server a port when it has none yet, writes its settings, and starts it. */
async function startServer(launch: Launch, server: Server): Promise<void> {
  const { servers, options } = launch;
  const keepsPort = server.port !== 0;
  const taken = new Set(servers.map((other) => other.port));
  for (let attempt = 1; ; attempt++) {
    if (!keepsPort) server.port = await findFreePort(options.portFrom, taken);
    await writeSettings(launch, server);
    try {
      return await server.process.start();
    } catch (error) {
      const mayRetry = error instanceof PortTakenError && !keepsPort && attempt < PORT_ATTEMPTS;
      if (!mayRetry) throw error;
      taken.add(server.port);
    }
  }
}

async function writeSettings(launch: Launch, server: Server): Promise<void> {
  const { home, account, credentials, options, servers } = launch;
  const primaryPort = servers[0]?.port ?? server.port;
  const text = serverSettings({
    name: server.name,
    port: server.port,
    upstream:
      server.name === "primary"
        ? undefined
        : { port: primaryPort, password: credentials.replicator },
    extra: options.settings ?? {},
  });
  await writeForAccount(account, join(dataFolder(home, server.name), SETTINGS_FILE), text);
}

function toCluster(launch: Launch, releaseLock: () => Promise<void>): Cluster {
  const { home, credentials, options, servers } = launch;
  const [primary, ...replicas] = servers;
  if (primary === undefined) throw new ClusterError("a cluster has a primary");
  const find = (name: ServerName): Server => {
    const server = servers.find((candidate) => candidate.name === name);
    if (server === undefined) throw new ClusterError(`this cluster has no ${name}`);
    return server;
  };
  const stopAll = async (): Promise<void> => {
    // A primary waits at its shutdown until its replicas have received everything.
    await Promise.all(replicas.map((replica) => replica.process.stop()));
    await primary.process.stop();
    await releaseLock();
  };
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= stopAll());
  const { replicator: _ours, ...passwords } = credentials;
  return {
    primary: toNode(launch, primary),
    replicas: replicas.map((replica) => toNode(launch, replica)),
    home,
    database: options.database ?? DEFAULT_DATABASE,
    passwords,
    stop,
    [Symbol.asyncDispose]: stop,
    kill: (name) => find(name).process.kill(),
    start: (name) => startServer(launch, find(name)),
    stopServer: (name, mode) => find(name).process.stop(mode),
  };
}

function toNode(launch: Launch, server: Server): ServerNode {
  const { credentials, options } = launch;
  const ownDatabase = options.database ?? DEFAULT_DATABASE;
  const url: ServerNode["url"] = (role, database = ownDatabase) =>
    `postgres://${role}:${credentials[role]}@127.0.0.1:${server.port}/${encodeURIComponent(database)}`;
  return {
    name: server.name,
    host: "127.0.0.1",
    get port() {
      return server.port;
    },
    url,
    sql: (text) => runSql(url("postgres"), text),
  };
}
