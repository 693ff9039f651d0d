// Strict reading of SCRAM messages: RFC 5802, section "Formal Syntax". Pure functions over bytes.

/** PostgreSQL's own limit (PG_MAX_SASL_MESSAGE_LENGTH); ours are about 200 bytes. */
export const SCRAM_MESSAGE_BYTES_MAX = 65_535;

/**
 * Upper bound for iteration counts, ours and a server's. 5,000,000 rounds keep one thread busy for
 * about 4 s, eight times what password guides ask for; more is a mistake or a trap.
 */
export const SCRAM_ITERATIONS_MAX = 5_000_000;

/** Size of SHA-256 keys, signatures and proofs. */
export const SCRAM_KEY_BYTES = 32;

/** PostgreSQL's SCRAM_RAW_NONCE_LEN: 18 bytes are 24 base64 characters without padding. */
export const SCRAM_NONCE_BYTES = 18;

/** Source of unpredictable bytes. */
export type RandomBytes = (size: number) => Uint8Array;

export interface ScramAttribute {
  readonly name: string;
  readonly value: string;
}

const ATTRIBUTE = /^([A-Za-z])=(.+)$/s;
const NONCE = /^[\x21-\x2b\x2d-\x7e]+$/;
const ITERATIONS = /^[1-9][0-9]{0,9}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The message as text, or undefined if it is too long, not UTF-8, or has a NUL in it. */
export function decodeScramText(message: Uint8Array): string | undefined {
  if (message.byteLength > SCRAM_MESSAGE_BYTES_MAX || message.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(message);
  } catch {
    return undefined;
  }
}

/** Splits `a=…,b=…` in order. Undefined if one part is not an attribute with a value. */
export function parseScramAttributes(text: string): readonly ScramAttribute[] | undefined {
  const attributes: ScramAttribute[] = [];
  for (const part of text.split(",")) {
    const match = ATTRIBUTE.exec(part);
    const name = match?.[1];
    const value = match?.[2];
    if (name === undefined || value === undefined) return undefined;
    attributes.push({ name, value });
  }
  return attributes;
}

/** Printable ASCII without comma. */
export function isScramNonce(text: string): boolean {
  return NONCE.test(text);
}

/** A decimal count from 1 to the maximum, without sign or leading zero. */
export function parseScramIterations(text: string): number | undefined {
  if (!ITERATIONS.test(text)) return undefined;
  const iterations = Number(text);
  return iterations <= SCRAM_ITERATIONS_MAX ? iterations : undefined;
}

/**
 * Canonical base64 only. A lenient decoder would read two texts as one proof, and whoever flips a
 * padding bit would still be let in.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (!BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? Uint8Array.from(bytes) : undefined;
}

export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** Bytewise exclusive or of two keys of equal length. */
export function xorBytes(left: Uint8Array, right: Uint8Array): Uint8Array {
  return left.map((byte, index) => byte ^ (right[index] ?? 0));
}
