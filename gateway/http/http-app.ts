// The routes of the HTTP and WebSocket door. Handlers take the request as it came: no body parser, no schema, no hook stands before them.
import type { Server } from "bun";
import { Elysia } from "elysia";
import { type ClientLink, ClientLinks } from "../session/client-link.ts";
import type { GatewayContext } from "../session/gateway-context.ts";
import { ownError } from "../session/server-error.ts";
import type { WebSocketData, WebSocketDoor } from "../ws/web-socket-door.ts";
import { Cors } from "./cors.ts";
import { healthAnswer, readyAnswer } from "./health.ts";
import { type Answer, errorAnswer, toResponse } from "./http-answer.ts";
import { QUERY_FORM, QueryDoor, SQL_FORM } from "./query-door.ts";
import type { Traffic } from "./traffic.ts";

type HttpServer = Server<WebSocketData>;

/** Bodies are read by the doors, which bound them and keep numbers exact. */
const UNPARSED = { parse: "none" } as const;

/** `serverOf` is asked per request: the server is there once the app listens. In a handler's context it would cost each request more. */
export function httpApp(
  context: GatewayContext,
  traffic: Traffic,
  webSockets: WebSocketDoor,
  serverOf: () => HttpServer | null,
) {
  const { gateway, http } = context.config;
  const links = new ClientLinks(gateway.tls !== undefined, http.trusted_proxies);
  const cors = new Cors(http.allowed_origins);
  const sql = new QueryDoor(context, traffic, SQL_FORM);
  const query = new QueryDoor(context, traffic, QUERY_FORM);

  const linkOf = (request: Request): ClientLink =>
    links.of(serverOf()?.requestIP(request)?.address ?? "", request.headers);
  const finish = (request: Request, answer: Answer): Response => {
    answer.headers["Neon-Request-Id"] = crypto.randomUUID();
    cors.apply(request.headers, answer.headers);
    return toResponse(answer);
  };
  const post = async (door: QueryDoor, request: Request): Promise<Response> => {
    if (traffic.isDraining) return finish(request, stopping());
    traffic.began();
    try {
      return finish(request, await door.answer(request, () => linkOf(request)));
    } finally {
      traffic.ended();
    }
  };
  const preflight = (request: Request): Response => cors.preflight(request.headers);
  const upgrade = (request: Request): Response | undefined => {
    if (traffic.isDraining) return finish(request, stopping());
    return webSockets.upgrade(request, serverOf(), linkOf(request));
  };

  // Elysia itself looks for the path at a fixed place of the URL: by default a Host of up to three characters leads to other routes,
  // and without the default no path is found behind https. Routes with a method are matched by Bun, so each one has its method, and
  // the last one, which Elysia matches, looks at the URL itself.
  return new Elysia({ handler: { standardHostname: false }, normalize: false })
    .post("/sql", ({ request }) => post(sql, request), UNPARSED)
    .options("/sql", ({ request }) => preflight(request), UNPARSED)
    .post("/v1/query", ({ request }) => post(query, request), UNPARSED)
    .options("/v1/query", ({ request }) => preflight(request), UNPARSED)
    .get("/", ({ request }) => upgrade(request))
    .get("/sql", ({ request }) => upgrade(request))
    .get("/v1", ({ request }) => upgrade(request))
    .get("/v2", ({ request }) => upgrade(request))
    .get("/health", () => healthAnswer())
    .head("/health", () => healthAnswer())
    .get("/ready", () => readyAnswer(context, traffic.isDraining))
    .head("/ready", () => readyAnswer(context, traffic.isDraining))
    .all("/*", ({ request }) => finish(request, unrouted(request)), UNPARSED);
}

/** Methods of each path, for those who come with another one. */
const ALLOWED: ReadonlyMap<string, string> = new Map([
  ["/sql", "POST, OPTIONS, GET"],
  ["/v1/query", "POST, OPTIONS"],
  ["/", "GET"],
  ["/v1", "GET"],
  ["/v2", "GET"],
  ["/health", "GET, HEAD"],
  ["/ready", "GET, HEAD"],
]);

function unrouted(request: Request): Answer {
  // Of a Host that makes no URL nothing is left to ask for.
  const allowed = ALLOWED.get(URL.parse(request.url)?.pathname ?? "");
  return allowed === undefined ? notFound() : methodNotAllowed(allowed);
}

function notFound(): Answer {
  return errorAnswer(ownError("08P01", "there is nothing at this path"), 404);
}

function methodNotAllowed(allowed: string): Answer {
  const error = ownError("08P01", "the method is not allowed here");
  return errorAnswer(error, 405, { Allow: allowed });
}

function stopping(): Answer {
  const error = ownError("57P01", "the gateway is shutting down", { severity: "FATAL" });
  // So that the client opens its next connection elsewhere.
  return errorAnswer(error, 503, { Connection: "close" });
}
