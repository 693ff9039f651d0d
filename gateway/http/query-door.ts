// Takes one POST with SQL from its bytes to its answer: counts the client, asks who it is, reads the body, runs it. /sql and /v1/query differ in their form only.
import type { ClientLink } from "../session/client-link.ts";
import { DRIVER_ERROR_STATUS, httpStatusOf } from "../session/error-mapping.ts";
import type { GatewayContext, ResolvedIdentity } from "../session/gateway-context.ts";
import type { JsonBytes } from "../session/json-bytes.ts";
import { runQueries } from "../session/query-runner.ts";
import { type ResultForm, ResultShapes } from "../session/result-shape.ts";
import { type ServerError, ownError } from "../session/server-error.ts";
import { SharedTimer } from "../session/shared-timer.ts";
import {
  type Answer,
  type AnswerHeaders,
  errorAnswer,
  jsonAnswer,
  runHeaders,
} from "./http-answer.ts";
import { logIn } from "./http-login.ts";
import { WHOLE_BODY_MAX, largeAnswer } from "./large-answer.ts";
import { readQueryRequest } from "./query-request.ts";
import { BodyReader, type BodyResult } from "./request-body.ts";
import { type SqlRequest, addTransactionHeaders, readSqlRequest } from "./sql-request.ts";
import type { Traffic } from "./traffic.ts";

const TOKEN_HEADER = "walgate-token";

/** The form of a door. */
interface Form {
  readonly mayUsePassword: boolean;
  readonly read: (headers: Headers, text: string) => BodyResult<SqlRequest>;
  readonly statusOf: (error: ServerError) => number;
  readonly result: ResultForm;
}

/** The serverless driver's: every error has the one status that it reads. */
export const SQL_FORM: Form = {
  mayUsePassword: true,
  read: readSqlRequest,
  statusOf: () => DRIVER_ERROR_STATUS,
  // Exactly these keys: the driver gives the object to its user as it is.
  result: {
    head: (fields) => `{"fields":${JSON.stringify(fields)},"rows":[`,
    tail: (command, rowCount, { isArray }) =>
      `],"command":${JSON.stringify(command)},"rowCount":${rowCount},"rowAsArray":${isArray}}`,
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
  result: {
    head: (fields) => {
      const columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
      return `{"columns":${JSON.stringify(columns)},"rows":[`;
    },
    tail: (command, rowCount) => `],"command":${JSON.stringify(command)},"rowCount":${rowCount}}`,
  },
};

/** Most queries are over by then, and nobody else's wait gets longer by it. */
const CLIENT_WATCH_DELAY_MS = 10;

const SINGLE = ["", ""] as const;
const BATCH = ['{"results":[', "]}"] as const;

export class QueryDoor {
  readonly #context: GatewayContext;
  readonly #traffic: Traffic;
  readonly #form: Form;
  readonly #shapes: ResultShapes;
  readonly #bodies: BodyReader;
  readonly #clientWatch: SharedTimer;

  constructor(context: GatewayContext, traffic: Traffic, form: Form) {
    const { config, environment } = context;
    this.#context = context;
    this.#traffic = traffic;
    this.#form = form;
    this.#shapes = new ResultShapes(form.result);
    this.#clientWatch = new SharedTimer(environment.clock, CLIENT_WATCH_DELAY_MS);
    this.#bodies = new BodyReader({
      bytesMax: config.http.max_request_body,
      timeoutMs: config.gateway.client_login_timeout * 1_000,
      clock: environment.clock,
    });
  }

  /** Never rejects. */
  async answer(request: Request, linkOf: () => ClientLink): Promise<Answer> {
    const { clients, environment } = this.#context;
    if (!clients.enter()) {
      return this.#refuse(
        ownError("53300", "no more clients allowed (max_client_conn)", { severity: "FATAL" }),
      );
    }
    let isLoggedIn = false;
    try {
      const { headers } = request;
      const login = await logIn(this.#context, headers, linkOf, this.#form.mayUsePassword);
      if (!login.ok) return this.#refuse(login.error);
      const body = await this.#bodies.read(request);
      if (!body.ok) return this.#refuse(body.error);
      const sql = this.#form.read(headers, body.value);
      if (!sql.ok) return this.#refuse(sql.error);
      clients.loggedIn();
      isLoggedIn = true;
      return await this.#run(request, login.identity, sql.value);
    } catch (error) {
      environment.reportBug(error);
      return this.#refuse(ownError("XX000", "internal error"));
    } finally {
      clients.leave(isLoggedIn);
    }
  }

  async #run(request: Request, identity: ResolvedIdentity, sql: SqlRequest): Promise<Answer> {
    const { statements, transaction } = sql;
    const run = await runQueries(this.#context, {
      identity,
      statements,
      transaction,
      token: request.headers.get(TOKEN_HEADER) ?? undefined,
      client: request,
      clientWatch: this.#clientWatch,
      responseBytesMax: this.#context.config.http.max_response_body,
      shapes: this.#shapes,
      brackets: transaction === undefined ? SINGLE : BATCH,
    });
    const { outcome } = run;
    const headers = runHeaders(run);
    if (!outcome.ok) return this.#refuse(outcome.error, headers);
    if (transaction !== undefined) addTransactionHeaders(headers, request.headers, transaction);
    return jsonAnswer(200, this.#deliverable(outcome.body), headers);
  }

  /** A large body keeps its client counted until it has been read. */
  #deliverable(body: JsonBytes): Answer["body"] {
    if (body.size <= WHOLE_BODY_MAX) return body.whole();
    const { clients, environment } = this.#context;
    this.#traffic.began();
    clients.stay();
    return largeAnswer(body, environment, () => {
      clients.leave(true);
      this.#traffic.ended();
    });
  }

  #refuse(error: ServerError, headers?: AnswerHeaders): Answer {
    return errorAnswer(error, this.#form.statusOf(error), headers);
  }
}
