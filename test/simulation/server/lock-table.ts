// Locks of simulated servers: who has them, and who waits, in order of arrival.
import type { SimServer } from "./sim-server.ts";

interface Lock {
  owner: number;
  readonly waiting: (() => void)[];
}

export class LockTable {
  readonly #locks = new Map<string, Lock>();

  /** True when the session has it now, or had it before. */
  take(server: SimServer, name: string, session: number): boolean {
    const key = `${server.name} ${name}`;
    const lock = this.#locks.get(key);
    if (lock === undefined) this.#locks.set(key, { owner: session, waiting: [] });
    return lock === undefined || lock.owner === session;
  }

  /** Calls back once when the lock is given up; whoever is called tries to take it. */
  whenFree(server: SimServer, name: string, callback: () => void): void {
    const lock = this.#locks.get(`${server.name} ${name}`);
    if (lock === undefined) callback();
    else lock.waiting.push(callback);
  }

  /** Those of the session whose name begins so. */
  release(server: SimServer, session: number, prefix: string): void {
    const start = `${server.name} ${prefix}`;
    for (const [key, lock] of this.#locks) {
      if (lock.owner !== session || !key.startsWith(start)) continue;
      this.#locks.delete(key);
      for (const callback of lock.waiting) callback();
    }
  }

  releaseAll(server: SimServer, session: number): void {
    this.release(server, session, "");
  }
}
