// Finds a server and a connection for one segment: route, wait for the replica or the queue, and check again what waiting may have changed.
import type { BackendConnection } from "../backend/backend-connection.ts";
import type { LeaseRequest } from "../connections/pooled-connection.ts";
import type { Position } from "../consistency/position.ts";
import { PoolError, type PoolErrorCode } from "../errors.ts";
import type { Route } from "../routing/server.ts";
import type { RelayEnvironment, RelayIdentity } from "./relay-environment.ts";

export interface Seeking {
  readonly access: "read" | "primary";
  readonly positions: readonly Position[];
  /** Why a read is sought a primary for. */
  readonly pinnedReason?: "pinned" | "position_unknown";
  /** May be called before `seek` returns. */
  found(backend: BackendConnection, route: Route): void;
  /** May be called before `seek` returns. */
  failed(error: PoolError): void;
}

/** What PostgreSQL says to a statement that a cancel request has ended. */
export function canceledByUser(): PoolError {
  const message = "canceling statement due to user request";
  return new PoolError("ERR_CANCELED", message, { sqlState: "57014" });
}

/** No connection to the server could be opened. */
const UNREACHABLE: ReadonlySet<PoolErrorCode> = new Set<PoolErrorCode>([
  "ERR_CONNECT_FAILED",
  "ERR_CONNECT_TIMEOUT",
  "ERR_SERVER_LOGIN_REFUSED",
  "ERR_SERVER_PROTOCOL",
]);

export class LeaseSeeker {
  readonly #environment: RelayEnvironment;
  readonly #identity: RelayIdentity;
  /** Raised by every end of a search: an answer for an older number is for nobody. */
  #attempt = 0;
  #isSeeking = false;
  #request: LeaseRequest<BackendConnection> | undefined;

  constructor(environment: RelayEnvironment, identity: RelayIdentity) {
    this.#environment = environment;
    this.#identity = identity;
  }

  get isSeeking(): boolean {
    return this.#isSeeking;
  }

  /** One search at a time. */
  seek(seeking: Seeking): void {
    const { profile } = this.#identity;
    this.#isSeeking = true;
    this.#route(seeking, this.#environment.clock.now() + profile.queryWaitTimeoutMs);
  }

  /** Gives the search up; neither callback comes any more. */
  stop(): void {
    this.#attempt++;
    this.#isSeeking = false;
    const request = this.#request;
    this.#request = undefined;
    if (request !== undefined) this.#environment.pools.abandon(request);
  }

  #route(seeking: Seeking, deadline: number): void {
    const { profile, cluster } = this.#identity;
    const attempt = ++this.#attempt;
    const routed = cluster.route({
      access: seeking.access,
      consistency: profile.consistency,
      positions: seeking.positions,
      waitMs: profile.consistencyWaitMs,
      deadline,
      ...(seeking.pinnedReason === undefined ? {} : { pinnedReason: seeking.pinnedReason }),
    });
    if (!(routed instanceof Promise)) {
      this.#acquire(routed, seeking, deadline);
      return;
    }
    routed.then(
      (route) => {
        if (attempt === this.#attempt) this.#acquire(route, seeking, deadline);
      },
      (error: unknown) => {
        if (attempt === this.#attempt) this.#fail(seeking, error);
      },
    );
  }

  #acquire(route: Route, seeking: Seeking, deadline: number): void {
    const { pools } = this.#environment;
    const request: LeaseRequest<BackendConnection> = {
      profile: this.#identity.profile,
      principal: this.#identity.principal,
      startupOptions: "",
      servers: route.servers,
      deadline,
      granted: (backend) => {
        this.#request = undefined;
        this.#granted(backend, route, seeking, deadline);
      },
      refused: (error) => {
        this.#request = undefined;
        this.#refused(route, seeking, deadline, error);
      },
    };
    let backend: BackendConnection | undefined;
    try {
      backend = pools.acquire(request);
    } catch (error) {
      this.#refused(route, seeking, deadline, error);
      return;
    }
    if (backend === undefined) this.#request = request;
    else this.#found(backend, route, seeking);
  }

  /** While it queued, a replica may have been restarted, promoted or paused: what the router found then must still hold. */
  #granted(backend: BackendConnection, route: Route, seeking: Seeking, deadline: number): void {
    const { cluster } = this.#identity;
    if (!backend.isOpen) {
      // Lost between the grant and this call.
      this.#environment.pools.discard(backend);
      this.#route(seeking, deadline);
      return;
    }
    const isStillRight =
      route.role === "primary"
        ? backend.server.role === "primary"
        : cluster.covers(backend.server, seeking.positions);
    if (isStillRight) {
      this.#found(backend, route, seeking);
      return;
    }
    this.#environment.pools.release(backend);
    this.#route({ ...seeking, access: "primary" }, deadline);
  }

  /** Replicas that take no connection are no reason to fail a read: the primary serves it. */
  #refused(route: Route, seeking: Seeking, deadline: number, error: unknown): void {
    const isUnreachable = error instanceof PoolError && UNREACHABLE.has(error.code);
    if (route.role === "replica" && isUnreachable) {
      this.#route({ ...seeking, access: "primary" }, deadline);
    } else {
      this.#fail(seeking, error);
    }
  }

  #found(backend: BackendConnection, route: Route, seeking: Seeking): void {
    this.#attempt++;
    this.#isSeeking = false;
    const { routes } = this.#environment.counters;
    routes.set(route.reason, (routes.get(route.reason) ?? 0) + 1);
    seeking.found(backend, route);
  }

  #fail(seeking: Seeking, error: unknown): void {
    this.#attempt++;
    this.#isSeeking = false;
    if (!(error instanceof PoolError)) this.#environment.reportBug(error);
    seeking.failed(
      error instanceof PoolError
        ? error
        : new PoolError("ERR_NO_SERVER", "internal error", { sqlState: "XX000", cause: error }),
    );
  }
}
