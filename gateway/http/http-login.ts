// Says who has sent an HTTP request: by the token in its Authorization header, or else by the user and password of its connection string.
import { Secret } from "#auth/secret.ts";
import type { AuthResult } from "#auth/identity.ts";
import { NO_PARAMETERS } from "#pool/session/startup-parameters.ts";
import type { ClientLink } from "../session/client-link.ts";
import {
  type GatewayContext,
  type ResolvedIdentity,
  resolveIdentity,
} from "../session/gateway-context.ts";
import { type ServerError, authError, ownError } from "../session/server-error.ts";
import { type ConnectionTarget, readConnectionString } from "./connection-string.ts";

export type LoginResult =
  | { readonly ok: true; readonly identity: ResolvedIdentity }
  | { readonly ok: false; readonly error: ServerError };

/** Where a connection string may come; its password is only looked at where there is no Authorization header. */
const CONNECTION_STRING_HEADER = "neon-connection-string";

/** `mayUsePassword`: false where only a token is a credential. `linkOf` is asked only where the link matters, for it takes a system call. */
export async function logIn(
  context: GatewayContext,
  headers: Headers,
  linkOf: () => ClientLink,
  mayUsePassword: boolean,
): Promise<LoginResult> {
  const text = mayUsePassword ? headers.get(CONNECTION_STRING_HEADER) : null;
  const connection = text === null ? undefined : readConnectionString(text);
  if (connection?.ok === false) return connection;
  const target = connection?.target;

  const bearer = readBearer(headers);
  if (!bearer.ok) return bearer;
  let result: AuthResult | Failure;
  if (bearer.token !== undefined) {
    // The token alone decides; a database that came with it must be the one that it leads to.
    const request = { transport: "http", database: target?.database } as const;
    result = await context.authenticator.checkJwt(request, bearer.token);
  } else if (target !== undefined) {
    result = await byPassword(context, target, linkOf());
  } else {
    return refuse(missing(mayUsePassword));
  }
  if ("error" in result) return result;
  if (!result.ok) {
    const { reason } = result.failure;
    context.log.info("login refused", { door: "http", address: linkOf().address, reason });
    return refuse(authError(result.failure));
  }
  const parameters = target?.parameters ?? NO_PARAMETERS;
  return { ok: true, identity: resolveIdentity(context, result.identity, parameters) };
}

export type BearerResult =
  | { readonly ok: true; readonly token: Secret | undefined }
  | { readonly ok: false; readonly error: ServerError };

/** The token of the Authorization header, unchecked; undefined without the header. */
export function readBearer(headers: Headers): BearerResult {
  const header = headers.get("authorization");
  if (header === null) return { ok: true, token: undefined };
  // Repeated headers come joined by commas, which a token never holds.
  const token = /^Bearer +([^\s,]+)$/i.exec(header)?.[1];
  if (token !== undefined) return { ok: true, token: new Secret(token) };
  return refuse(fatal("28000", 'the Authorization header is not one "Bearer" with a token'));
}

type Failure = { readonly ok: false; readonly error: ServerError };

async function byPassword(
  context: GatewayContext,
  target: ConnectionTarget,
  { isSecure }: ClientLink,
): Promise<AuthResult | Failure> {
  const { user, password, database } = target;
  if (user === "") return refuse(fatal("28000", "the connection string names no user"));
  if (password === undefined) {
    return refuse(fatal("28P01", `password authentication failed for user "${user}"`));
  }
  if (!context.clusters.has(database)) {
    return refuse(fatal("3D000", `database "${database}" does not exist`));
  }
  const request = { transport: "http", user, database, isSecure } as const;
  return context.authenticator.checkPassword(request, password);
}

function missing(mayUsePassword: boolean): ServerError {
  const other = mayUsePassword ? " or Neon-Connection-String" : "";
  return fatal("28000", `the request has no Authorization${other} header`);
}

function fatal(code: string, message: string): ServerError {
  return ownError(code, message, { severity: "FATAL" });
}

function refuse(error: ServerError): Failure {
  return { ok: false, error };
}
