// A map with a maximum: when it is full, the least recently used entry goes. No clock.

/** Least-recently-used map. `get` and `set` make an entry the most recent one. */
export class BoundedCache<Value> {
  // A Map iterates in insertion order, so the first key is the least recently used one.
  readonly #entries = new Map<string, Value>();
  readonly #countMax: number;

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  get count(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#countMax) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
