// Orders the servers that may serve a request, so that load spreads. Knows nothing of roles or freshness.
import type { Server } from "./server.ts";

/** Keeps what the alternation needs between two choices; one per database. */
export class ServerSelection {
  readonly #random: () => number;
  readonly #credits = new Map<Server, number>();

  /** `random` is from 0 up to 1, as Math.random. */
  constructor(random: () => number) {
    this.#random = random;
  }

  /**
   * All servers, the chosen one first, so that a full one yields to the next. Two by weighted alternation:
   * the same two would be compared every time, and every gateway would swing to the same side. More by the
   * less loaded of two at random, which needs no sorting and sends no herd to the one that is idle.
   */
  order(servers: readonly Server[]): readonly Server[] {
    const [first, second] = servers;
    if (first === undefined || second === undefined) return servers;
    if (servers.length === 2) {
      return this.#alternate(first, second) === first ? servers : [second, first];
    }
    const [chosen, other] = this.#lessLoadedOfTwo(servers);
    return [chosen, other, ...servers.filter((server) => server !== chosen && server !== other)];
  }

  /** Smooth weighted round-robin: each earns its weight, the richer one serves and pays for both. */
  #alternate(a: Server, b: Server): Server {
    const creditA = (this.#credits.get(a) ?? 0) + a.weight;
    const creditB = (this.#credits.get(b) ?? 0) + b.weight;
    const total = a.weight + b.weight;
    const chosen = creditA >= creditB ? a : b;
    this.#credits.set(a, chosen === a ? creditA - total : creditA);
    this.#credits.set(b, chosen === b ? creditB - total : creditB);
    return chosen;
  }

  #lessLoadedOfTwo(servers: readonly Server[]): readonly [Server, Server] {
    const at = Math.floor(this.#random() * servers.length);
    const step = 1 + Math.floor(this.#random() * (servers.length - 1));
    const a = servers[at];
    const b = servers[(at + step) % servers.length];
    if (a === undefined || b === undefined) throw new RangeError("random() is not below 1");
    return a.leased / a.weight <= b.leased / b.weight ? [a, b] : [b, a];
  }
}
