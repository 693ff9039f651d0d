// The ParameterStatus values a client is greeted with: those of a real server connection with the client's own settings in force.
import type { BackendConnection } from "../backend/backend-connection.ts";
import { claimParameters } from "./attach-parameters.ts";
import { LeaseSeeker } from "./lease-seeker.ts";
import type { RelayEnvironment, RelayIdentity } from "./relay-environment.ts";

/** Sets of settings remembered; a client with a set not among them is checked against a server anew. */
const GREETINGS_MAX = 1_000;
const GREETING_TIMEOUT_MS = 10_000;

export class Greetings {
  readonly #environment: RelayEnvironment;
  /** Reported values by profile, generation and settings; the least recently used first. */
  readonly #known = new Map<string, ReadonlyMap<string, string>>();

  /** Questions on their way: clients that come together with the same settings share one. */
  readonly #asked = new Map<string, Promise<ReadonlyMap<string, string>>>();

  constructor(environment: RelayEnvironment) {
    this.#environment = environment;
  }

  /**
   * Reported parameters for a new session, by name.
   *
   * @throws PoolError when no server can be had, or the server refuses a setting (with its SQLSTATE).
   */
  async get(identity: RelayIdentity): Promise<ReadonlyMap<string, string>> {
    const { profile, parameters } = identity;
    const key = `${profile.name}\0${profile.generation}\0${parameters.fingerprint}`;
    const known = this.#known.get(key);
    if (known !== undefined) {
      this.#known.delete(key);
      this.#known.set(key, known);
      return known;
    }
    const asked = this.#asked.get(key);
    if (asked !== undefined) return asked;
    const asking = this.#ask(identity);
    this.#asked.set(key, asking);
    try {
      const reported = await asking;
      this.#remember(key, reported);
      return reported;
    } finally {
      this.#asked.delete(key);
    }
  }

  #remember(key: string, reported: ReadonlyMap<string, string>): void {
    this.#known.set(key, reported);
    if (this.#known.size > GREETINGS_MAX) {
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest);
        break;
      }
    }
  }

  async #ask(identity: RelayIdentity): Promise<ReadonlyMap<string, string>> {
    const { pools, clock } = this.#environment;
    const backend = await new Promise<BackendConnection>((resolve, reject) => {
      const owner = { found: resolve, failed: reject };
      new LeaseSeeker(this.#environment, identity, owner).seek({
        access: "primary",
        positions: [],
      });
    });
    const { appliedParameters, appliedNames } = backend;
    try {
      const text = claimParameters(backend, identity.parameters);
      if (text !== undefined) await backend.run(text, clock.now() + GREETING_TIMEOUT_MS);
      return new Map(backend.parameters);
    } catch (error) {
      // Refused as a whole: in force is what was before.
      backend.appliedParameters = appliedParameters;
      backend.appliedNames = appliedNames;
      throw error;
    } finally {
      if (backend.isOpen) pools.release(backend);
      else pools.discard(backend);
    }
  }
}
