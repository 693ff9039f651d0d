// The read-after-write tokens that a session has to send. They are opaque: only the gateway can
// compare them.

/**
 * Far above what a session sends (32 tokens of 67 characters); a longer seed is not one of ours.
 */
const SEED_LENGTH_MAX = 4096;

/** Base64url with the format prefix, several of them separated by commas. */
const SEED = /^[\w.~-]+(?:, ?[\w.~-]+)*$/;

/**
 * An answer's token covers the tokens that its request carried, as the gateway merges them into it.
 * So one query after the other leaves one token. With queries in parallel, an answer says nothing
 * about a token that arrived after its request had left: both stay, and the next request carries
 * both.
 *
 *     request 1 carries a ──────────────► answer b      held: b
 *     request 2 carries a ────────────────────► answer c      held: b, c
 *     request 3 carries b, c ───────────────────────────► answer d      held: d
 */
export class SessionTokens {
  #held: readonly string[];

  /** @throws TypeError for a seed that is not a token; the message does not repeat it. */
  constructor(seed: string | null | undefined) {
    const text = seed?.trim() ?? "";
    if (text !== "" && (text.length > SEED_LENGTH_MAX || !SEED.test(text))) {
      throw new TypeError("the seed of a session must be the token of another session");
    }
    this.#held = text === "" ? [] : [text];
  }

  /** What a request has to carry now; give the same list to cover() with its answer. */
  get held(): readonly string[] {
    return this.#held;
  }

  /**
   * Takes in the token of the answer to a request that carried `sent`; null: the answer had none.
   */
  cover(sent: readonly string[], received: string | null): void {
    if (received === null) {
      return;
    }
    const kept = this.#held.filter((token) => token === received || !sent.includes(token));
    // A token that was sent and is no longer held has been covered by a faster answer.
    const isKnown = kept.includes(received) || sent.includes(received);
    this.#held = isKnown ? kept : [...kept, received];
  }
}

/** Header value for a list of tokens; null when there is none to send. */
export function joinTokens(tokens: readonly string[]): string | null {
  return tokens.length === 0 ? null : tokens.join(",");
}
