// A value that prints as ***, so that no log line, error or JSON document can carry it by accident.
import { createHash, timingSafeEqual } from "node:crypto";
import { inspect } from "node:util";

const MASK = "***";

/** Holds text or bytes that must not be printed. Only `reveal` and `revealBytes` give them back. */
export class Secret {
  readonly #value: string | Uint8Array;

  constructor(value: string | Uint8Array) {
    this.#value = typeof value === "string" ? value : Uint8Array.from(value);
  }

  /**
   * The value as text.
   * @throws TypeError if the secret was made from bytes that are not UTF-8; use `revealBytes` there.
   */
  reveal(): string {
    return typeof this.#value === "string"
      ? this.#value
      : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.#value);
  }

  /** A copy of the value as bytes; text is encoded as UTF-8. */
  revealBytes(): Uint8Array {
    return typeof this.#value === "string"
      ? new TextEncoder().encode(this.#value)
      : Uint8Array.from(this.#value);
  }

  /** Compares in a time that depends neither on the first difference nor on equality of lengths. */
  equals(other: Secret): boolean {
    return timingSafeEqual(this.#digest(), other.#digest());
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [Symbol.toPrimitive](): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }

  #digest(): Uint8Array {
    return createHash("sha256").update(this.#value).digest();
  }
}
