// Finds a server and a connection for one segment: route, wait for the replica or the queue, and check again what waiting may have changed.
import type { BackendConnection } from "../backend/backend-connection.ts";
import type { LeaseRequest } from "../connections/pooled-connection.ts";
import type { StartupProfile } from "../connections/startup-profile.ts";
import type { Position } from "../consistency/position.ts";
import { PoolError, type PoolErrorCode } from "../errors.ts";
import type { RouteRequest } from "../routing/route-request.ts";
import type { Route, Server } from "../routing/server.ts";
import type { RelayEnvironment, RelayIdentity } from "./relay-environment.ts";

/** Whom a lease is sought for. Exactly one of the two is called for each search that is not stopped, maybe before `seek` returns. */
export interface LeaseOwner {
  found(backend: BackendConnection, route: Route): void;
  failed(error: PoolError): void;
}

export interface Wanted {
  readonly access: "read" | "primary";
  readonly positions: readonly Position[];
  /** Why a read is sought a primary for. */
  readonly pinnedReason?: RouteRequest["pinnedReason"];
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

const UNROUTED: Route = { role: "primary", servers: [], reason: "write" };

/** One attempt, as router and pool see it. Never used for a second: the pool tells requests apart by identity. */
class Search implements RouteRequest, LeaseRequest<BackendConnection> {
  readonly #seeker: LeaseSeeker;
  readonly profile: StartupProfile;
  readonly principal: string;
  readonly startupOptions = "";
  readonly access: "read" | "primary";
  readonly positions: readonly Position[];
  readonly pinnedReason: RouteRequest["pinnedReason"];
  readonly now: number;
  readonly deadline: number;
  route: Route = UNROUTED;
  /** The pool has it in its queue. */
  isQueued = false;

  constructor(
    seeker: LeaseSeeker,
    { profile, principal }: RelayIdentity,
    { access, positions, pinnedReason }: Wanted,
    now: number,
    deadline: number,
  ) {
    this.#seeker = seeker;
    this.profile = profile;
    this.principal = principal;
    this.access = access;
    this.positions = positions;
    this.pinnedReason = pinnedReason;
    this.now = now;
    this.deadline = deadline;
  }

  get consistency(): StartupProfile["consistency"] {
    return this.profile.consistency;
  }

  get waitMs(): number {
    return this.profile.consistencyWaitMs;
  }

  get servers(): readonly Server[] {
    return this.route.servers;
  }

  granted(backend: BackendConnection): void {
    this.isQueued = false;
    this.#seeker.granted(this, backend);
  }

  refused(error: Error): void {
    this.isQueued = false;
    this.#seeker.refused(this, error);
  }
}

export class LeaseSeeker {
  readonly #environment: RelayEnvironment;
  readonly #identity: RelayIdentity;
  readonly #owner: LeaseOwner;
  #search: Search | undefined;

  constructor(environment: RelayEnvironment, identity: RelayIdentity, owner: LeaseOwner) {
    this.#environment = environment;
    this.#identity = identity;
    this.#owner = owner;
  }

  get isSeeking(): boolean {
    return this.#search !== undefined;
  }

  /** One search at a time. */
  seek(wanted: Wanted): void {
    const now = this.#environment.clock.now();
    this.#route(wanted, now, now + this.#identity.profile.queryWaitTimeoutMs);
  }

  /** Gives the search up; the owner hears nothing of it any more. */
  stop(): void {
    const search = this.#search;
    this.#search = undefined;
    if (search?.isQueued === true) this.#environment.pools.abandon(search);
  }

  /**
   * For the search. While it queued, a replica may have been restarted, promoted or paused: what the router found then must still
   * hold.
   */
  granted(search: Search, backend: BackendConnection): void {
    const { cluster } = this.#identity;
    if (!backend.isOpen) {
      // Lost between the grant and this call.
      this.#environment.pools.discard(backend);
      this.#route(search, this.#environment.clock.now(), search.deadline);
      return;
    }
    const isStillRight =
      search.route.role === "primary"
        ? backend.server.role === "primary"
        : cluster.covers(backend.server, search.positions);
    if (isStillRight) {
      this.#found(search, backend);
      return;
    }
    this.#environment.pools.release(backend);
    this.#routeToPrimary(search);
  }

  /** For the search. Replicas that take no connection are no reason to fail a read: the primary serves it. */
  refused(search: Search, error: unknown): void {
    const isUnreachable = error instanceof PoolError && UNREACHABLE.has(error.code);
    if (search.route.role === "replica" && isUnreachable) this.#routeToPrimary(search);
    else this.#fail(error);
  }

  #routeToPrimary({ positions, pinnedReason, deadline }: Search): void {
    const now = this.#environment.clock.now();
    this.#route({ access: "primary", positions, pinnedReason }, now, deadline);
  }

  #route(wanted: Wanted, now: number, deadline: number): void {
    const search = new Search(this, this.#identity, wanted, now, deadline);
    this.#search = search;
    const routed = this.#identity.cluster.route(search);
    if (!(routed instanceof Promise)) {
      this.#acquire(search, routed);
      return;
    }
    routed.then(
      (route) => {
        if (search === this.#search) this.#acquire(search, route);
      },
      (error: unknown) => {
        if (search === this.#search) this.#fail(error);
      },
    );
  }

  #acquire(search: Search, route: Route): void {
    search.route = route;
    let backend: BackendConnection | undefined;
    try {
      backend = this.#environment.pools.acquire(search);
    } catch (error) {
      this.refused(search, error);
      return;
    }
    if (backend === undefined) search.isQueued = true;
    else this.#found(search, backend);
  }

  #found({ route }: Search, backend: BackendConnection): void {
    this.#search = undefined;
    const { routes } = this.#environment.counters;
    routes.set(route.reason, (routes.get(route.reason) ?? 0) + 1);
    this.#owner.found(backend, route);
  }

  #fail(error: unknown): void {
    this.#search = undefined;
    if (!(error instanceof PoolError)) this.#environment.reportBug(error);
    this.#owner.failed(
      error instanceof PoolError
        ? error
        : new PoolError("ERR_NO_SERVER", "internal error", { sqlState: "XX000", cause: error }),
    );
  }
}
