// Strings from the bytes of a message, without a view of them: that alone would cost more than the string.

/** Any byte to one character, so that two names are equal exactly when their bytes are. */
export function latin1(bytes: Uint8Array, from: number, to: number): string {
  return from === to ? "" : Buffer.prototype.toString.call(bytes, "latin1", from, to);
}

/** What is no UTF-8 becomes U+FFFD. */
export function utf8(bytes: Uint8Array, from: number, to: number): string {
  return from === to ? "" : Buffer.prototype.toString.call(bytes, "utf8", from, to);
}
