// What happened in a run, line by line; kept only when somebody will read it.

export class Trace {
  readonly lines: string[] | undefined;
  readonly #now: () => number;
  #hash = 0;
  #count = 0;

  constructor(now: () => number, isKept: boolean) {
    this.#now = now;
    this.lines = isKept ? [] : undefined;
  }

  /** Two runs of one seed have equal ones; covers every line, kept or not. */
  get fingerprint(): string {
    return `${this.#count}-${this.#hash.toString(16)}`;
  }

  note(text: string): void {
    const now = this.#now();
    // As exact as the line is, which is made only for a reader.
    this.#hash = Bun.hash.crc32(text, this.#hash ^ Math.round(now * 1000));
    this.#count++;
    this.lines?.push(`${now.toFixed(3)} ${text}\n`);
  }
}
