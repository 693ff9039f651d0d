// Drives real pools by arbitrary steps beside a plain record of who holds what, and compares the two after each step.
import { expect } from "bun:test";
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import { PoolError } from "#pool/errors.ts";
import type { Server } from "#pool/routing/server.ts";
import {
  type FakeConnection,
  FakePool,
  FakeRequest,
  fakeProfile,
  fakeServer,
  RETRY_MS,
  settle,
} from "#test/unit/pool/connections/fake-pool.ts";

export const POOL_SIZE = 2;
export const WAIT_QUEUE_MAX = 6;
const SHORT_DEADLINE_MS = 2_000;
const LONG_DEADLINE_MS = 1e9;
const ROUNDS_MAX = 200;

/** `pick` chooses the object that the step acts on, `detail` its manner; both any number from 0 on. */
export interface Step {
  readonly kind:
    | "acquire"
    | "release"
    | "discard"
    | "abandon"
    | "open succeeds"
    | "open fails"
    | "rekey succeeds"
    | "rekey fails"
    | "connection is lost"
    | "connection is closing"
    | "time passes"
    | "reload";
  readonly pick: number;
  readonly detail: number;
  /** False: the next step comes before the promises that this one settled are noticed. */
  readonly isSettled: boolean;
}

const OPEN_FAILURE = new Error("the server refused");
const PRINCIPALS = ["alice", "bob"] as const;
// Orders and subsets of three servers, by index.
const ROUTES: readonly (readonly number[])[] = [[0], [1], [0, 1], [1, 0], [2, 1, 0]];

export class PoolModel {
  readonly pool = new FakePool();
  readonly #servers: readonly Server[] = ["a", "b", "c"].map(fakeServer);
  readonly #profiles: StartupProfile[];
  /** In order of arrival: neither answered nor abandoned. */
  readonly #waiting = new Set<FakeRequest>();
  readonly #held = new Map<FakeConnection, FakeRequest>();
  readonly #gone = new Set<FakeRequest>();
  readonly #requests: FakeRequest[] = [];
  readonly #failedHomes = new Set<string>();
  #isInCallback = false;

  constructor() {
    const limits = { defaultPoolSize: POOL_SIZE, waitQueueMax: WAIT_QUEUE_MAX };
    const short = { serverIdleTimeoutMs: 5_000, serverLifetimeMs: 20_000 };
    this.#profiles = [
      fakeProfile({ ...limits, name: "api" }),
      fakeProfile({ ...limits, ...short, name: "tenants", isTrusted: false }),
      fakeProfile({ ...limits, ...short, name: "reports", user: "reporter" }),
    ];
  }

  async run(step: Step): Promise<void> {
    // Promises may have settled since the last step.
    this.#forgetAnswered();
    this.#act(step);
    this.#checkAlways();
    if (step.isSettled) {
      await settle();
      this.#checkSettled();
    }
  }

  /** Lets everything succeed and be released: then nobody may wait any more, whatever the deadlines. */
  async finish(): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX && !this.#isIdle; round += 1) {
      for (const open of this.pool.opens.slice()) {
        open.succeed();
      }
      for (const connection of this.pool.connections.filter(({ isRekeying }) => isRekeying)) {
        connection.finishRekey();
      }
      await settle();
      for (const connection of this.#held.keys().toArray()) {
        this.#release(connection);
      }
      await settle();
      if (this.pool.opens.length === 0) {
        // Those who wait for a server that failed.
        this.pool.clock.advance(RETRY_MS + 1_000);
      }
      this.#checkAlways();
    }
    expect(this.#isIdle).toBe(true);
    for (const request of this.#requests) {
      expect(request.outcomes.length).toBe(this.#gone.has(request) ? 0 : 1);
    }
  }

  async close(): Promise<void> {
    await this.pool.pools.close(this.pool.clock.now());
    expect(this.pool.connections.filter(({ isOpen }) => isOpen)).toEqual([]);
    expect(this.pool.connections.filter(({ closeCount }) => closeCount > 1)).toEqual([]);
    expect(this.pool.clock.timerCount).toBe(0);
    expect(this.#servers.map(({ leased }) => leased)).toEqual([0, 0, 0]);
  }

  get #isIdle(): boolean {
    const isChanging = this.pool.connections.some(({ isRekeying }) => isRekeying);
    const isOpening = this.pool.opens.length > 0;
    return !isChanging && !isOpening && this.#waiting.size === 0 && this.#held.size === 0;
  }

  #act({ kind, pick, detail }: Step): void {
    const { pool } = this;
    switch (kind) {
      case "acquire":
        this.#acquire(pick, detail);
        break;
      case "release":
        choose([...this.#held.keys()], pick, (connection) => this.#release(connection));
        break;
      case "discard":
        choose([...this.#held.keys()], pick, (connection) => this.#discard(connection));
        break;
      case "abandon":
        choose([...this.#waiting], pick, (request) => this.#abandon(request));
        break;
      case "open succeeds":
        choose(pool.opens, pick, (open) => open.succeed());
        break;
      case "open fails":
        choose(pool.opens, pick, (open) => {
          this.#failedHomes.add(homeName(open.request.profile, open.request.server));
          open.fail(OPEN_FAILURE);
        });
        break;
      case "rekey succeeds":
        choose(this.#rekeying(), pick, (connection) => connection.finishRekey());
        break;
      case "rekey fails":
        choose(this.#rekeying(), pick, (connection) => connection.failRekey());
        break;
      case "connection is lost":
        choose(this.#open(), pick, (connection) => connection.lose());
        break;
      case "connection is closing":
        choose(this.#free(), pick, (connection) => {
          connection.isOpen = false;
        });
        break;
      case "time passes":
        pool.clock.advance(detail * 100);
        break;
      case "reload":
        this.#reload(pick);
        break;
    }
  }

  #acquire(pick: number, detail: number): void {
    const profile = this.#profiles[pick % this.#profiles.length];
    const route = ROUTES[detail % ROUTES.length];
    const principal = PRINCIPALS[(pick >> 2) % PRINCIPALS.length];
    if (profile === undefined || route === undefined || principal === undefined) {
      throw new Error("the step's numbers are not indices");
    }
    const servers = route.flatMap((place) => this.#servers[place] ?? []);
    const timeoutMs = detail % 3 === 0 ? SHORT_DEADLINE_MS : LONG_DEADLINE_MS;
    const request = new FakeRequest({
      profile,
      servers,
      principal: profile.isTrusted ? "" : principal,
      deadline: this.pool.clock.now() + timeoutMs,
    });
    request.onGranted = (connection) => this.#granted(request, connection, detail);
    this.#requests.push(request);
    this.#waiting.add(request);
    try {
      const connection = this.pool.pools.acquire(request);
      expect(request.outcomes).toEqual([]);
      if (connection !== undefined) {
        request.outcomes.push(connection);
        this.#hold(request, connection, !this.#isInCallback);
      }
    } catch (error) {
      // Refused at once: a full queue, or a failed server and nothing to wait for.
      if (error instanceof PoolError || error === OPEN_FAILURE) {
        request.outcomes.push(error instanceof PoolError ? error : OPEN_FAILURE);
      } else {
        throw error;
      }
    }
  }

  #granted(request: FakeRequest, connection: FakeConnection, detail: number): void {
    expect(this.#isInCallback).toBe(false);
    this.#isInCallback = true;
    this.#hold(request, connection, true);
    if (detail % 4 === 0) {
      this.#release(connection);
    } else if (detail % 5 === 0) {
      this.#forgetAnswered();
      choose([...this.#waiting], detail, (other) => this.#abandon(other));
    } else if (detail % 7 === 0) {
      this.#acquire(detail >> 1, detail >> 2);
    }
    this.#isInCallback = false;
  }

  /** Callbacks come in the order of their grants; what an acquire inside one gets at once is out of that order. */
  #hold(request: FakeRequest, connection: FakeConnection, isInOrder: boolean): void {
    expect(this.#held.has(connection)).toBe(false);
    expect(connection.isOpen).toBe(true);
    expect(request.servers).toContain(connection.server);
    expect(keyOf(connection)).toBe(keyOf(request));
    this.#forgetAnswered();
    if (isInOrder) {
      const place = this.#requests.indexOf(request);
      const overtaken = [...this.#waiting].filter(
        (other) =>
          isEqual(other, request) &&
          this.#requests.indexOf(other) < place &&
          !this.#hasBetter(other, connection.server),
      );
      expect(overtaken.map((other) => this.#requests.indexOf(other))).toEqual([]);
    }
    this.#held.set(connection, request);
  }

  #release(connection: FakeConnection): void {
    this.#held.delete(connection);
    this.pool.pools.release(connection);
    if (!this.#isInCallback && !this.#held.has(connection)) {
      expect(() => this.pool.pools.release(connection)).toThrow("not on lease");
    }
  }

  #discard(connection: FakeConnection): void {
    this.#held.delete(connection);
    this.pool.pools.discard(connection);
    expect(() => this.pool.pools.discard(connection)).toThrow("not on lease");
  }

  #abandon(request: FakeRequest): void {
    this.#waiting.delete(request);
    this.#gone.add(request);
    this.pool.pools.abandon(request);
  }

  #reload(pick: number): void {
    const place = pick % this.#profiles.length;
    const old = this.#profiles[place];
    if (old !== undefined) {
      const next = fakeProfile({ ...old, generation: old.generation + 1 });
      this.#profiles[place] = next;
      this.pool.pools.retire(next.name, next.generation);
    }
  }

  /** True after any number of operations, settled or not. */
  #checkAlways(): void {
    this.#forgetAnswered();
    const held = [...this.#held.keys()];
    const leases = this.#servers.map(
      (server) => held.filter((item) => item.server === server).length,
    );
    expect(this.#servers.map(({ leased }) => leased)).toEqual(leases);
    // What the pools say, and what there is.
    const counts = this.pool.pools.snapshot().map((row) => row.used + row.free + row.opening);
    const homes = new Map<string, number>();
    for (const item of [...this.#open(), ...this.pool.opens.map(({ request }) => request)]) {
      const name = homeName(item.profile, item.server);
      homes.set(name, (homes.get(name) ?? 0) + 1);
    }
    expect(Math.max(0, ...counts, ...homes.values())).toBeLessThanOrEqual(POOL_SIZE);
    // Only shutdown closes what somebody holds.
    expect(held.some(({ closeCount }) => closeCount > 0)).toBe(false);
  }

  #checkSettled(): void {
    this.#forgetAnswered();
    const free = this.#free();
    for (const waiter of this.#waiting) {
      const reachable = free.filter(
        ({ server, profile }) =>
          waiter.servers.includes(server) && profile.user === waiter.profile.user,
      );
      const fitting = reachable.filter(
        (connection) =>
          keyOf(connection) === keyOf(waiter) && !this.#hasBetter(waiter, connection.server),
      );
      expect(idsOf(this.#isUnhindered(waiter) ? reachable : fitting)).toEqual([]);
    }
    const rows = this.pool.pools.snapshot();
    const counted = rows.map((row) => {
      const isHere = (item: { server: Server; profile: StartupProfile }): boolean =>
        item.server.name === row.server && item.profile.user === row.user;
      const used = [...this.#held.keys()].filter((item) => isHere(item) && item.isOpen).length;
      const opens = this.pool.opens.filter(({ request }) => isHere(request)).length;
      const opening = opens + this.#rekeying().filter(isHere).length;
      return { ...row, used, opening };
    });
    expect(rows).toEqual(counted);
  }

  /** No attempt that could be for this waiter, and no server that keeps the pool from opening. */
  #isUnhindered({ servers, profile }: FakeRequest): boolean {
    return servers.every(
      (server) =>
        !this.#failedHomes.has(homeName(profile, server)) && !this.#hasAttempt(profile, server),
    );
  }

  #hasAttempt({ user }: StartupProfile, server: Server): boolean {
    return this.pool.pools
      .snapshot()
      .some((row) => row.user === user && row.server === server.name && row.opening > 0);
  }

  /** Something may be under way for it on a server that it prefers: what is FREE on a later one doesn't go to it. */
  #hasBetter({ profile, servers }: FakeRequest, server: Server): boolean {
    const preferred = servers.slice(0, servers.indexOf(server));
    return preferred.some((other) => this.#hasAttempt(profile, other));
  }

  #forgetAnswered(): void {
    for (const request of this.#waiting) {
      if (request.outcomes.length > 0) {
        this.#waiting.delete(request);
      }
    }
  }

  #rekeying(): FakeConnection[] {
    return this.pool.connections.filter(({ isRekeying }) => isRekeying);
  }

  #open(): FakeConnection[] {
    return this.pool.connections.filter(({ isOpen }) => isOpen);
  }

  #free(): FakeConnection[] {
    return this.#open().filter(
      (connection) => !connection.isRekeying && !this.#held.has(connection),
    );
  }
}

function choose<T>(from: readonly T[], pick: number, act: (chosen: T) => void): void {
  const chosen = from[pick % Math.max(1, from.length)];
  if (chosen !== undefined) {
    act(chosen);
  }
}

function idsOf(connections: readonly FakeConnection[]): number[] {
  return connections.map(({ id }) => id);
}

function homeName(profile: StartupProfile, server: Server): string {
  return `${profile.user} ${server.name}`;
}

function keyOf(item: {
  profile: StartupProfile;
  principal: string;
  startupOptions: string;
}): string {
  const { name, generation, database, user } = item.profile;
  return JSON.stringify([name, generation, database, user, item.principal, item.startupOptions]);
}

function isEqual(left: FakeRequest, right: FakeRequest): boolean {
  const names = (request: FakeRequest): string => request.servers.map(({ name }) => name).join();
  return keyOf(left) === keyOf(right) && names(left) === names(right);
}
