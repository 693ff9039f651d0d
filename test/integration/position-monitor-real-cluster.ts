// A DatabaseCluster of the router over a real PostgreSQL cluster, with the monitor's own role and few rights.
import { Secret } from "#auth/secret.ts";
import type { Cluster, ServerName, ServerNode } from "#gateway/embedded/cluster.ts";
import { openControlConnection } from "#pool/backend/control-connection.ts";
import type { Position } from "#pool/consistency/position.ts";
import { DatabaseCluster, type RoutingEvent } from "#pool/routing/database-cluster.ts";
import type { RouteRequest } from "#pool/routing/route-request.ts";
import type { Server } from "#pool/routing/server.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import { BunTransport } from "#pool/transport/bun-transport.ts";

const POLL_MS = 5;

export class RealCluster {
  readonly clock = new SystemClock();
  readonly events: RoutingEvent[] = [];
  readonly servers: readonly Server[];
  readonly router: DatabaseCluster;

  /** `order` is that of the configuration. */
  constructor(cluster: Cluster, order: readonly ServerName[]) {
    const { clock } = this;
    const transport = new BunTransport(clock);
    const password = new Secret(cluster.passwords.walgate_monitor);
    this.servers = order.map((name) => toServer(nodeOf(cluster, name)));
    this.router = new DatabaseCluster({
      name: cluster.database,
      servers: this.servers,
      openControl: (server, deadline) =>
        openControlConnection({
          transport,
          clock,
          server,
          dbname: cluster.database,
          user: "walgate_monitor",
          password,
          deadline,
        }),
      clock,
      random: Math.random,
      counters: { count: (event) => this.events.push(event) },
    });
  }

  server(name: ServerName): Server {
    const server = this.servers.find((candidate) => candidate.name === name);
    if (server === undefined) throw new Error(`no server ${name}`);
    return server;
  }

  /** Who serves a read, as names in order and a reason. */
  async read(positions: readonly Position[], waitMs: number): Promise<string> {
    const request: RouteRequest = {
      access: "read",
      consistency: "session",
      positions,
      waitMs,
      now: this.clock.now(),
      deadline: this.clock.now() + 5_000,
    };
    const route = await this.router.route(request);
    const names = route.servers.map((server) => server.name).toSorted();
    return `${route.reason}: ${names.join(" ")}`;
  }

  position(): Promise<Position> {
    return this.router.oracle(this.clock.now() + 5_000);
  }

  /** Milliseconds until it holds; throws after `withinMs`. */
  async until(holds: () => boolean | Promise<boolean>, withinMs: number): Promise<number> {
    const start = this.clock.now();
    while (!(await holds())) {
      if (this.clock.now() - start > withinMs) {
        throw new Error(`not true within ${withinMs} ms: ${holds.toString()}`);
      }
      await new Promise((resolve) => this.clock.schedule(POLL_MS, () => resolve(undefined)));
    }
    return this.clock.now() - start;
  }

  [Symbol.dispose](): void {
    this.router.stop();
  }
}

export function nodeOf(cluster: Cluster, name: ServerName): ServerNode {
  const node = [cluster.primary, ...cluster.replicas].find((one) => one.name === name);
  if (node === undefined) throw new Error(`no node ${name}`);
  return node;
}

function toServer(node: ServerNode): Server {
  return {
    name: node.name,
    address: { host: node.host, port: node.port },
    weight: 1,
    tls: { mode: "disable", ca: undefined },
    role: "unknown",
    epoch: 0,
    leased: 0,
  };
}
