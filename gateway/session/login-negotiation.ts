// A client's login over the wire protocol: from its StartupMessage to an identity ("Start-up"). Says what it needs to say through `send`.
import type { AuthFailure, Identity } from "#auth/identity.ts";
import type { LoginRequest } from "#auth/authenticator.ts";
import { SERVER_SCRAM_MECHANISMS, type ScramServerExchange } from "#auth/scram/server-exchange.ts";
import { Secret } from "#auth/secret.ts";
import {
  READY_IDLE_FRAME,
  encodeAuthentication,
  encodeBackendKeyData,
  encodeParameterStatus,
} from "#pool/wire/backend-messages.ts";
import { HEADER_BYTES, concatBytes, readInt32 } from "#pool/wire/message-types.ts";
import type { CancelKey } from "./cancel-registry.ts";
import type { GatewayContext } from "./gateway-context.ts";

const AUTHENTICATION_OK = encodeAuthentication(0);
/** Codes of authentication requests ("Message Formats"). */
const CLEARTEXT_PASSWORD = 3;
const SASL = 10;
const SASL_CONTINUE = 11;
const SASL_FINAL = 12;

export type LoginStep =
  | { readonly kind: "more" }
  | { readonly kind: "accepted"; readonly identity: Identity }
  | { readonly kind: "refused"; readonly failure: AuthFailure };

const MORE: LoginStep = { kind: "more" };

type State =
  | { readonly step: "cleartext" }
  | { readonly step: "sasl_initial"; readonly exchange: ScramServerExchange }
  | { readonly step: "sasl_response"; readonly exchange: ScramServerExchange }
  | { readonly step: "done" };

export class LoginNegotiation {
  readonly #context: GatewayContext;
  readonly #request: LoginRequest;
  readonly #send: (bytes: Uint8Array) => void;
  #state: State = { step: "done" };

  constructor(context: GatewayContext, request: LoginRequest, send: (bytes: Uint8Array) => void) {
    this.#context = context;
    this.#request = request;
    this.#send = send;
  }

  /** Asks the client for its secret, or checks the token that came with the link. */
  async begin(bearer: Secret | undefined): Promise<LoginStep> {
    const { authenticator } = this.#context;
    if (bearer !== undefined) {
      const { transport, database } = this.#request;
      const result = await authenticator.checkJwt({ transport, database }, bearer);
      return result.ok
        ? { kind: "accepted", identity: result.identity }
        : { kind: "refused", failure: result.failure };
    }
    const method = authenticator.wireMethod(this.#request);
    if (method.kind === "refuse") return { kind: "refused", failure: method.failure };
    if (method.kind === "cleartext") {
      this.#state = { step: "cleartext" };
      this.#send(encodeAuthentication(CLEARTEXT_PASSWORD));
    } else {
      const exchange = authenticator.scramExchange(this.#request);
      this.#state = { step: "sasl_initial", exchange };
      const names = SERVER_SCRAM_MECHANISMS.map((name) => `${name}\0`).join("");
      this.#send(encodeAuthentication(SASL, new TextEncoder().encode(`${names}\0`)));
    }
    return MORE;
  }

  /** Takes a PasswordMessage, SASLInitialResponse or SASLResponse: one type byte for all three. */
  async password(frame: Uint8Array): Promise<LoginStep> {
    const state = this.#state;
    this.#state = { step: "done" };
    switch (state.step) {
      case "cleartext":
        return this.#cleartext(frame);
      case "sasl_initial":
        return this.#saslInitial(frame, state.exchange);
      case "sasl_response":
        return this.#saslResponse(frame, state.exchange);
      case "done":
        break;
    }
    return malformed("unexpected password message");
  }

  async #cleartext(frame: Uint8Array): Promise<LoginStep> {
    const end = frame.indexOf(0, HEADER_BYTES);
    if (end !== frame.length - 1) return malformed("invalid password message");
    const password = new Secret(new TextDecoder().decode(frame.subarray(HEADER_BYTES, end)));
    const result = await this.#context.authenticator.checkPassword(this.#request, password);
    return result.ok
      ? { kind: "accepted", identity: result.identity }
      : { kind: "refused", failure: result.failure };
  }

  async #saslInitial(frame: Uint8Array, exchange: ScramServerExchange): Promise<LoginStep> {
    const nameEnd = frame.indexOf(0, HEADER_BYTES);
    if (nameEnd < 0 || frame.length < nameEnd + 5) return malformed("invalid SASL message");
    const mechanism = new TextDecoder().decode(frame.subarray(HEADER_BYTES, nameEnd));
    const size = readInt32(frame, nameEnd + 1);
    const response = frame.subarray(nameEnd + 5);
    if (size !== response.length) return malformed("invalid SASL message");
    const result = await exchange.start(mechanism, response);
    if (!result.ok) return { kind: "refused", failure: result.failure };
    this.#state = { step: "sasl_response", exchange };
    this.#send(encodeAuthentication(SASL_CONTINUE, result.serverFirst));
    return MORE;
  }

  #saslResponse(frame: Uint8Array, exchange: ScramServerExchange): LoginStep {
    const result = exchange.finish(frame.subarray(HEADER_BYTES));
    if (!result.ok) return { kind: "refused", failure: result.failure };
    this.#send(encodeAuthentication(SASL_FINAL, result.serverFinal));
    return { kind: "accepted", identity: result.identity };
  }
}

/** Everything from AuthenticationOk to the first ReadyForQuery. */
export function encodeGreeting(reported: ReadonlyMap<string, string>, key: CancelKey): Uint8Array {
  const frames = [AUTHENTICATION_OK];
  for (const [name, value] of reported) frames.push(encodeParameterStatus(name, value));
  frames.push(encodeBackendKeyData(key.processId, key.secretKey), READY_IDLE_FRAME);
  return concatBytes(frames);
}

function malformed(message: string): LoginStep {
  return {
    kind: "refused",
    failure: { sqlState: "08P01", reason: "protocol_violation", clientMessage: message },
  };
}
