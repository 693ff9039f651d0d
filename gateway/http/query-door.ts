// Takes one POST with SQL from its bytes to its answer: counts the client, asks who it is, reads the body, runs it. /sql and /v1/query differ in their form only.
import type { ClientLink, ClientLinks } from "../session/client-link.ts";
import { DRIVER_ERROR_STATUS, httpStatusOf } from "../session/error-mapping.ts";
import type { GatewayContext, ResolvedIdentity } from "../session/gateway-context.ts";
import { type QueryRun, runQueries } from "../session/query-runner.ts";
import type { StatementResult } from "../session/result-collector.ts";
import { type ServerError, ownError } from "../session/server-error.ts";
import { errorAnswer, jsonAnswer, runHeaders } from "./http-answer.ts";
import { logIn } from "./http-login.ts";
import { WHOLE_BODY_MAX, largeAnswer } from "./large-answer.ts";
import { readQueryRequest } from "./query-request.ts";
import { type BodyResult, readBody } from "./request-body.ts";
import { type SqlRequest, readSqlRequest, transactionHeaders } from "./sql-request.ts";
import type { Traffic } from "./traffic.ts";

const TOKEN_HEADER = "walgate-token";

/** The form of a door. */
interface Form {
  readonly mayUsePassword: boolean;
  readonly read: (headers: Headers, text: string) => BodyResult<SqlRequest>;
  readonly statusOf: (error: ServerError) => number;
  readonly answer: (
    headers: Headers,
    request: SqlRequest,
    results: Results,
    run: QueryRun,
  ) => Answer;
}

interface Answer {
  readonly body: string;
  readonly headers: Headers;
}

type Results = readonly StatementResult[];

/** The serverless driver's: every error has the one status that it reads. */
export const SQL_FORM: Form = {
  mayUsePassword: true,
  read: readSqlRequest,
  statusOf: () => DRIVER_ERROR_STATUS,
  answer: (requestHeaders, { statements, transaction }, results, run) => {
    const headers = runHeaders(run);
    const bodies = results.map((result, index) =>
      sqlResult(result, statements[index]?.format.isArray === true),
    );
    if (transaction === undefined) return { body: bodies[0] ?? "", headers };
    for (const [name, value] of transactionHeaders(requestHeaders, transaction)) {
      headers.set(name, value);
    }
    return { body: `{"results":[${bodies.join(",")}]}`, headers };
  },
};

/** Our own. */
export const QUERY_FORM: Form = {
  mayUsePassword: false,
  read: (_headers, text) => {
    const query = readQueryRequest(text);
    if (!query.ok) return query;
    return { ok: true, value: { statements: [query.value], transaction: undefined } };
  },
  statusOf: ({ code }) => httpStatusOf(code),
  answer: (_headers, _request, [result], run) => ({
    body: result === undefined ? "" : queryResult(result),
    headers: runHeaders(run),
  }),
};

/** Exactly these keys: the driver gives the object to its user as it is. */
function sqlResult({ fields, rows, command, rowCount }: StatementResult, isArray: boolean): string {
  return `{"fields":${JSON.stringify(fields)},"rows":[${rows.join(",")}],"command":${JSON.stringify(command)},"rowCount":${rowCount},"rowAsArray":${isArray}}`;
}

function queryResult({ fields, rows, command, rowCount }: StatementResult): string {
  const columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
  return `{"columns":${JSON.stringify(columns)},"rows":[${rows.join(",")}],"command":${JSON.stringify(command)},"rowCount":${rowCount}}`;
}

export class QueryDoor {
  readonly #context: GatewayContext;
  readonly #links: ClientLinks;
  readonly #traffic: Traffic;
  readonly #form: Form;

  constructor(context: GatewayContext, links: ClientLinks, traffic: Traffic, form: Form) {
    this.#context = context;
    this.#traffic = traffic;
    this.#links = links;
    this.#form = form;
  }

  /** Never rejects. `peerAddress` is empty when unknown. */
  async answer(request: Request, peerAddress: string): Promise<Response> {
    const { clients, environment } = this.#context;
    if (!clients.enter()) {
      return this.#refuse(
        ownError("53300", "no more clients allowed (max_client_conn)", { severity: "FATAL" }),
      );
    }
    let isLoggedIn = false;
    try {
      const { headers } = request;
      const link = this.#links.of(peerAddress, headers);
      const prepared = await this.#prepare(request, link);
      if (!prepared.ok) return this.#refuse(prepared.error);
      clients.loggedIn();
      isLoggedIn = true;
      return await this.#run(request, prepared.identity, prepared.value);
    } catch (error) {
      environment.reportBug(error);
      return this.#refuse(ownError("XX000", "internal error"));
    } finally {
      clients.leave(isLoggedIn);
    }
  }

  async #prepare(request: Request, link: ClientLink): Promise<Prepared> {
    const { config, environment } = this.#context;
    const { headers } = request;
    const login = await logIn(this.#context, headers, link, this.#form.mayUsePassword);
    if (!login.ok) return login;
    const body = await readBody(request, {
      bytesMax: config.http.max_request_body,
      timeoutMs: config.gateway.client_login_timeout * 1_000,
      clock: environment.clock,
    });
    if (!body.ok) return body;
    const read = this.#form.read(headers, body.value);
    return read.ok ? { ok: true, identity: login.identity, value: read.value } : read;
  }

  async #run(request: Request, identity: ResolvedIdentity, sql: SqlRequest): Promise<Response> {
    const run = await runQueries(this.#context, {
      identity,
      ...sql,
      token: request.headers.get(TOKEN_HEADER) ?? undefined,
      signal: request.signal,
      responseBytesMax: this.#context.config.http.max_response_body,
    });
    const { outcome } = run;
    if (!outcome.ok) return this.#refuse(outcome.error, runHeaders(run));
    const { body, headers } = this.#form.answer(request.headers, sql, outcome.results, run);
    return jsonAnswer(200, this.#deliverable(body), headers);
  }

  /** A large body keeps its client counted until it has been read. */
  #deliverable(text: string): Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
    const body = new TextEncoder().encode(text);
    if (body.length <= WHOLE_BODY_MAX) return body;
    const { clients, environment } = this.#context;
    this.#traffic.began();
    clients.stay();
    return largeAnswer(body, environment, () => {
      clients.leave(true);
      this.#traffic.ended();
    });
  }

  #refuse(error: ServerError, headers?: Headers): Response {
    return errorAnswer(error, this.#form.statusOf(error), headers);
  }
}

type Prepared =
  | { readonly ok: true; readonly identity: ResolvedIdentity; readonly value: SqlRequest }
  | { readonly ok: false; readonly error: ServerError };
