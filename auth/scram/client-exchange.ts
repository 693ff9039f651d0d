// The client side of SCRAM-SHA-256 and -PLUS, for our logins to PostgreSQL: RFC 5802 and RFC 7677.
//
//   ready ──start──► first ──continue──► final ──finish──► verified
//     any step that meets a lie or comes out of order ──► failed
import { timingSafeEqual } from "node:crypto";
import type { Secret } from "../secret.ts";
import { backendScramKeys } from "./key-cache.ts";
import type { ScramKeyCache } from "./key-cache.ts";
import {
  decodeBase64,
  decodeScramText,
  encodeBase64,
  isScramNonce,
  parseScramAttributes,
  parseScramIterations,
  SCRAM_KEY_BYTES,
  SCRAM_NONCE_BYTES,
  xorBytes,
} from "./messages.ts";
import type { RandomBytes } from "./messages.ts";
import { hmacSha256 } from "./verifier.ts";

export const SCRAM_SHA_256 = "SCRAM-SHA-256";
export const SCRAM_SHA_256_PLUS = "SCRAM-SHA-256-PLUS";

/** Why an exchange with a server ended. */
export type ScramErrorReason =
  | "mechanism"
  | "malformed"
  | "nonce"
  | "iterations"
  | "server_error"
  | "server_signature"
  | "order";

/** A server that does not follow the protocol or cannot prove that it knows the password. */
export class ScramError extends Error {
  override readonly name = "ScramError";
  readonly sqlState: "28000" | "08P01";
  readonly reason: ScramErrorReason;

  constructor(sqlState: "28000" | "08P01", reason: ScramErrorReason, message: string) {
    super(message);
    this.sqlState = sqlState;
    this.reason = reason;
  }
}

export interface ScramClientOptions {
  readonly password: Secret;
  readonly randomBytes: RandomBytes;
  /**
   * `tls-server-end-point` data of the server's certificate, if the link is TLS and the certificate
   * has such data. Then -PLUS is used where it is offered, and a server that seems not to offer it
   * is told that we would have (`y`), which uncovers somebody who removed the offer.
   */
  readonly channelBinding?: Uint8Array | undefined;
  /** Default: the process's cache. */
  readonly keyCache?: ScramKeyCache;
}

interface ServerFirst {
  readonly nonce: string;
  readonly salt: Uint8Array;
  readonly iterations: number;
}

type State =
  | { readonly step: "ready" }
  | { readonly step: "first"; readonly gs2Header: string; readonly nonce: string }
  | { readonly step: "deriving" }
  | { readonly step: "final"; readonly serverSignature: Uint8Array }
  | { readonly step: "verified" }
  | { readonly step: "failed" };

/** One login. Each method is called once, in order; every error is final. */
export class ScramClientExchange {
  readonly #password: Secret;
  readonly #randomBytes: RandomBytes;
  readonly #channelBinding: Uint8Array | undefined;
  readonly #keyCache: ScramKeyCache;
  #state: State = { step: "ready" };

  constructor(options: ScramClientOptions) {
    this.#password = options.password;
    this.#randomBytes = options.randomBytes;
    this.#channelBinding = options.channelBinding;
    this.#keyCache = options.keyCache ?? backendScramKeys;
  }

  /**
   * True once the server's signature was found right. An AuthenticationOk before that comes from a
   * server that skipped the proof, and must not be believed.
   */
  get isVerified(): boolean {
    return this.#state.step === "verified";
  }

  /**
   * Chooses among the server's mechanisms and makes client-first.
   * @throws ScramError 28000 if there is no mechanism in common.
   */
  start(mechanisms: readonly string[]): { mechanism: string; message: Uint8Array } {
    if (this.#state.step !== "ready") this.#fail("08P01", "order", "SCRAM exchange out of order");
    const isPlus = this.#channelBinding !== undefined && mechanisms.includes(SCRAM_SHA_256_PLUS);
    if (!isPlus && !mechanisms.includes(SCRAM_SHA_256)) {
      this.#fail("28000", "mechanism", "server offers no SASL mechanism that is supported");
    }
    const nonce = encodeBase64(this.#randomBytes(SCRAM_NONCE_BYTES));
    const gs2Header = isPlus
      ? "p=tls-server-end-point,,"
      : this.#channelBinding === undefined
        ? "n,,"
        : "y,,";
    this.#state = { step: "first", gs2Header, nonce };
    return {
      mechanism: isPlus ? SCRAM_SHA_256_PLUS : SCRAM_SHA_256,
      message: new TextEncoder().encode(gs2Header + clientFirstBare(nonce)),
    };
  }

  /**
   * Reads server-first and makes client-final. Costs one PBKDF2 on the thread pool, or a cache hit.
   * @throws ScramError 08P01 for a message that is not well formed, does not extend our nonce, or
   * asks for more iterations than SCRAM_ITERATIONS_MAX.
   */
  async continue(serverFirst: Uint8Array): Promise<Uint8Array> {
    const state = this.#state;
    if (state.step !== "first") this.#fail("08P01", "order", "SCRAM exchange out of order");
    this.#state = { step: "deriving" };

    const text = decodeScramText(serverFirst);
    const first = text === undefined ? undefined : this.#parseServerFirst(text, state.nonce);
    if (text === undefined || first === undefined) {
      this.#fail("08P01", "malformed", "malformed SCRAM message (server-first-message)");
    }
    const keys = await this.#keyCache.derive(this.#password, first.salt, first.iterations);

    const finalWithoutProof = `c=${this.#bindingInput(state.gs2Header)},r=${first.nonce}`;
    const authMessage = `${clientFirstBare(state.nonce)},${text},${finalWithoutProof}`;
    const proof = xorBytes(keys.clientKey, hmacSha256(keys.storedKey, authMessage));
    this.#state = { step: "final", serverSignature: hmacSha256(keys.serverKey, authMessage) };
    return new TextEncoder().encode(`${finalWithoutProof},p=${encodeBase64(proof)}`);
  }

  /**
   * Checks server-final: the server's proof that it knows the password's verifier.
   * @throws ScramError 28000 if the signature is wrong or the server reports an error.
   */
  finish(serverFinal: Uint8Array): void {
    const state = this.#state;
    if (state.step !== "final") this.#fail("08P01", "order", "SCRAM exchange out of order");
    const attributes = parseScramAttributes(decodeScramText(serverFinal) ?? "");
    const attribute = attributes?.length === 1 ? attributes[0] : undefined;
    if (attribute?.name === "e") {
      // The error's text is the server's and may be anything, so it stays out of our message.
      this.#fail("28000", "server_error", "server reported an error in the SCRAM exchange");
    }
    const signature = attribute?.name === "v" ? decodeBase64(attribute.value) : undefined;
    if (signature?.byteLength !== SCRAM_KEY_BYTES) {
      this.#fail("08P01", "malformed", "malformed SCRAM message (server-final-message)");
    }
    if (!timingSafeEqual(signature, state.serverSignature)) {
      this.#fail("28000", "server_signature", "incorrect server signature");
    }
    this.#state = { step: "verified" };
  }

  #parseServerFirst(text: string, clientNonce: string): ServerFirst | undefined {
    const attributes = parseScramAttributes(text);
    // Exactly r, s, i: a mandatory extension (m=) or anything behind them is refused, as in libpq.
    if (attributes?.map((attribute) => attribute.name).join("") !== "rsi") return undefined;
    const [nonce, saltText, iterationsText] = attributes.map((attribute) => attribute.value);
    const salt = decodeBase64(saltText ?? "");
    if (nonce === undefined || salt === undefined || salt.byteLength === 0) return undefined;
    if (!isScramNonce(nonce)) return undefined;
    if (!nonce.startsWith(clientNonce) || nonce.length === clientNonce.length) {
      this.#fail("08P01", "nonce", "invalid SCRAM response (nonce mismatch)");
    }
    const iterations = parseScramIterations(iterationsText ?? "");
    if (iterations === undefined) {
      this.#fail("08P01", "iterations", "server asks for an unacceptable SCRAM iteration count");
    }
    return { nonce, salt, iterations };
  }

  #bindingInput(gs2Header: string): string {
    const header = Buffer.from(gs2Header);
    const isBound = gs2Header.startsWith("p=") && this.#channelBinding !== undefined;
    return encodeBase64(isBound ? Buffer.concat([header, this.#channelBinding]) : header);
  }

  #fail(sqlState: "28000" | "08P01", reason: ScramErrorReason, message: string): never {
    this.#state = { step: "failed" };
    throw new ScramError(sqlState, reason, message);
  }
}

function clientFirstBare(nonce: string): string {
  // PostgreSQL takes the user from the startup packet and ignores this one; libpq leaves it empty.
  return `n=,r=${nonce}`;
}
