// Entry point: checks the options and builds the database handle and its sessions.

import type { Result } from "./answer.ts";
import { readAnswer } from "./answer.ts";
import { Deadline } from "./deadline.ts";
import type { Statement } from "./fragment.ts";
import type { Runner } from "./runner.ts";
import { createRunner } from "./runner.ts";
import { joinTokens, SessionTokens } from "./session-tokens.ts";
import type { Fetcher, TokenSource } from "./transport.ts";
import { Transport } from "./transport.ts";
import { Turnstile } from "./turnstile.ts";

const DEFAULT_TIMEOUT_MS = 60_000;

/** Runtimes keep timers as 32-bit integers; above this some of them fire at once. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

const QUERY_PATH = "/v1/query";

export interface ConnectOptions {
  /** Address of the gateway, http or https; a path is kept as a prefix. */
  readonly url: string | URL;
  /** JWT, or a function that gives the current one before each query. Default: none is sent. */
  readonly token?: TokenSource;
  /** Object whose fetch() is used, such as a service binding. Default: globalThis. */
  readonly fetcher?: Fetcher;
  /**
   * Time for one query from start to the last byte of its answer, in milliseconds. Default: 60,000.
   */
  readonly timeoutMs?: number;
}

/**
 * A database behind a gateway. Its queries are independent of each other: none carries a read-
 * after-write token, so a read may not see an earlier write yet. Use a session for that.
 */
export interface Db extends Runner {
  /**
   * A scope in which each read sees the writes before it. Make one per user or request; it holds no
   * connection. A `seed`, the `token` of an earlier session, carries the guarantee over.
   *
   * @throws TypeError for a seed that is not a token.
   *
   * @example
   * const session = db.session(cookies.get("walgate-token"));
   * await session`insert into posts (title) values (${title})`;
   * const posts = await session`select * from posts`; // Has the new one, from whichever replica.
   * cookies.set("walgate-token", session.token ?? "");
   */
  session(seed?: string | null): Session;
}

/** Carries the newest read-after-write token from each answer to the next query. */
export interface Session extends Runner {
  /** What the next query carries; null before the first token. Store it to seed a later session. */
  readonly token: string | null;
}

/**
 * A handle for the database that the gateway chooses from the token's identity. Opens nothing: each
 * query is one HTTP request.
 *
 * @throws TypeError for an unusable option.
 *
 * @example
 * const db = connect({ url: "https://gateway.example.com", token: jwt });
 * const user = await db`select name from users where id = ${7}`.one();
 */
export function connect(options: ConnectOptions): Db {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > TIMEOUT_MS_MAX) {
    throw new TypeError(`timeoutMs must be a whole number from 1 to ${TIMEOUT_MS_MAX}`);
  }
  const transport = new Transport(
    queryUrl(options.url),
    options.token,
    options.fetcher ?? globalThis,
  );

  const execute = async (
    statement: Statement,
    signal: AbortSignal | undefined,
  ): Promise<Result> => {
    const deadline = new Deadline(timeoutMs, signal);
    return readAnswer(await deadline.bound(() => transport.post(statement, null, deadline.signal)));
  };
  return Object.assign(createRunner(execute), {
    session: (seed?: string | null): Session => createSession(transport, timeoutMs, seed),
  });
}

function createSession(
  transport: Transport,
  timeoutMs: number,
  seed: string | null | undefined,
): Session {
  const tokens = new SessionTokens(seed);
  const turnstile = new Turnstile();

  const execute = async (
    statement: Statement,
    signal: AbortSignal | undefined,
  ): Promise<Result> => {
    const deadline = new Deadline(timeoutMs, signal);
    await turnstile.enter(deadline);
    try {
      const sent = tokens.held;
      const answer = await deadline.bound(() =>
        transport.post(statement, joinTokens(sent), deadline.signal),
      );
      // Before the answer is understood: an error answer brings a token as well.
      tokens.cover(sent, answer.token);
      session.token = joinTokens(tokens.held);
      return readAnswer(answer);
    } finally {
      turnstile.leave();
    }
  };
  const session = Object.assign(createRunner(execute), { token: joinTokens(tokens.held) });
  return session;
}

function queryUrl(base: string | URL): URL {
  const url = URL.canParse(String(base)) ? new URL(String(base)) : null;
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new TypeError("url must be an absolute http or https URL");
  }
  if (url.username !== "" || url.password !== "") {
    throw new TypeError("url must not hold a user name or password; use the option token");
  }
  url.pathname = url.pathname.replace(/\/+$/, "") + QUERY_PATH;
  url.hash = "";
  return url;
}
