// The server side of SCRAM-SHA-256 over message payloads: RFC 5802, RFC 7677. No channel binding yet.
//
//   ready ──start──► first ──finish──► done       any refusal ends it, too
import { timingSafeEqual } from "node:crypto";
import type { AuthFailure, AuthResult, Identity } from "../identity.ts";
import { passwordFailure } from "../identity.ts";
import {
  decodeBase64,
  decodeScramText,
  encodeBase64,
  isScramNonce,
  parseScramAttributes,
  SCRAM_KEY_BYTES,
  SCRAM_NONCE_BYTES,
  xorBytes,
} from "./messages.ts";
import type { RandomBytes } from "./messages.ts";
import { hmacSha256, sha256 } from "./verifier.ts";
import type { ScramVerifier } from "./verifier.ts";

/** What a server of ours offers in AuthenticationSASL. */
export const SERVER_SCRAM_MECHANISMS: readonly string[] = ["SCRAM-SHA-256"];

export interface ScramServerOptions {
  /** The name of the startup packet; the one inside the SCRAM message is ignored, as PostgreSQL does. */
  readonly user: string;
  /** The user's verifier, or a mock one, so that an unknown user looks like a known one. */
  readonly verifier: () => Promise<ScramVerifier>;
  /** What a right proof earns. A failure here also makes a right proof end in a refusal. */
  readonly outcome: AuthResult;
  readonly randomBytes: RandomBytes;
}

export type ScramStartResult =
  | { readonly ok: true; readonly serverFirst: Uint8Array }
  | { readonly ok: false; readonly failure: AuthFailure };

export type ScramFinishResult =
  | { readonly ok: true; readonly serverFinal: Uint8Array; readonly identity: Identity }
  | { readonly ok: false; readonly failure: AuthFailure };

interface ClientFirst {
  readonly gs2Header: string;
  readonly bare: string;
  readonly nonce: string;
}

interface ClientFinal {
  readonly binding: string;
  readonly nonce: string;
  readonly proof: Uint8Array;
  readonly withoutProof: string;
}

type State =
  | { readonly step: "ready" }
  | {
      readonly step: "first";
      readonly binding: string;
      readonly nonce: string;
      readonly verifier: ScramVerifier;
      /** client-first-bare and server-first, joined: the first two thirds of AuthMessage. */
      readonly transcript: string;
    }
  | { readonly step: "done" };

/** One login of one client. `start`, then `finish`; a step out of order is refused. */
export class ScramServerExchange {
  readonly #options: ScramServerOptions;
  #state: State = { step: "ready" };

  constructor(options: ScramServerOptions) {
    this.#options = options;
  }

  /** Takes SASLInitialResponse: the mechanism's name and client-first. */
  async start(mechanism: string, clientFirst: Uint8Array): Promise<ScramStartResult> {
    const isInOrder = this.#state.step === "ready";
    this.#state = { step: "done" };
    if (!isInOrder) return refuse("SCRAM exchange out of order");
    if (!SERVER_SCRAM_MECHANISMS.includes(mechanism)) {
      return refuse("client selected an invalid SASL authentication mechanism");
    }
    const first = parseClientFirst(clientFirst);
    if (typeof first === "string") return refuse(first);

    const verifier = await this.#options.verifier();
    const nonce = first.nonce + encodeBase64(this.#options.randomBytes(SCRAM_NONCE_BYTES));
    const serverFirst = `r=${nonce},s=${encodeBase64(verifier.salt)},i=${verifier.iterations}`;
    this.#state = {
      step: "first",
      binding: Buffer.from(first.gs2Header).toString("base64"),
      nonce,
      verifier,
      transcript: `${first.bare},${serverFirst}`,
    };
    return { ok: true, serverFirst: new TextEncoder().encode(serverFirst) };
  }

  /** Takes SASLResponse: client-final with the proof. */
  finish(clientFinal: Uint8Array): ScramFinishResult {
    const state = this.#state;
    this.#state = { step: "done" };
    if (state.step !== "first") return refuse("SCRAM exchange out of order");
    const final = parseClientFinal(clientFinal);
    if (final === undefined) return refuse("malformed SCRAM message (client-final-message)");
    if (final.binding !== state.binding) return refuse("SCRAM channel binding check failed");
    if (final.nonce !== state.nonce) return refuse("invalid SCRAM response (nonce mismatch)");

    const { verifier } = state;
    const authMessage = `${state.transcript},${final.withoutProof}`;
    const clientKey = xorBytes(final.proof, hmacSha256(verifier.storedKey, authMessage));
    const isProven = timingSafeEqual(sha256(clientKey), verifier.storedKey);
    const { outcome, user } = this.#options;
    if (!outcome.ok) return outcome;
    if (!isProven) return { ok: false, failure: passwordFailure(user, "wrong_password") };
    const signature = hmacSha256(verifier.serverKey, authMessage);
    return {
      ok: true,
      serverFinal: new TextEncoder().encode(`v=${encodeBase64(signature)}`),
      identity: outcome.identity,
    };
  }
}

function refuse(clientMessage: string): { readonly ok: false; readonly failure: AuthFailure } {
  return {
    ok: false,
    failure: { sqlState: "08P01", reason: "protocol_violation", clientMessage },
  };
}

/** gs2-header, then `n=user,r=nonce` and optional extensions. A text is the reason of a refusal. */
function parseClientFirst(message: Uint8Array): ClientFirst | string {
  const text = decodeScramText(message);
  const malformed = "malformed SCRAM message (client-first-message)";
  if (text === undefined) return malformed;
  if (text.startsWith("p=")) {
    return "client requires SCRAM channel binding, which is not supported";
  }
  // 'y' says that the client would bind but saw no offer; we make none, so it is no downgrade.
  const header = /^[ny],(a=[^,]*)?,/.exec(text);
  if (header === null) return malformed;
  if (header[1] !== undefined)
    return "client uses an authorization identity, which is not supported";
  const gs2Header = header[0];
  const bare = text.slice(gs2Header.length);
  // An empty user name is what libpq sends, so `n=` is taken off before the attributes are read.
  const user = /^n=[^,]*,/.exec(bare);
  if (user === null) return malformed;
  const attributes = parseScramAttributes(bare.slice(user[0].length));
  const nonce = attributes?.[0];
  if (nonce?.name !== "r" || !isScramNonce(nonce.value)) return malformed;
  return { gs2Header, bare, nonce: nonce.value };
}

/** `c=binding,r=nonce`, optional extensions, and `p=proof` as the last one. */
function parseClientFinal(message: Uint8Array): ClientFinal | undefined {
  const text = decodeScramText(message);
  if (text === undefined) return undefined;
  const attributes = parseScramAttributes(text);
  const [binding, nonce] = attributes ?? [];
  const proofAttribute = attributes?.at(-1);
  if (binding?.name !== "c" || nonce?.name !== "r" || proofAttribute?.name !== "p")
    return undefined;
  const proof = decodeBase64(proofAttribute.value);
  if (proof?.byteLength !== SCRAM_KEY_BYTES) return undefined;
  return {
    binding: binding.value,
    nonce: nonce.value,
    proof,
    withoutProof: text.slice(0, text.lastIndexOf(",p=")),
  };
}
