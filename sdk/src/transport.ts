// One statement over HTTP: the request's exact form, and the answer's status, headers and text.

import { ConnectionError } from "./errors.ts";
import type { Statement } from "./fragment.ts";

/** What the SDK passes to fetch; narrower than RequestInit so that any runtime's fetch fits. */
export interface FetchInit {
  readonly method: "POST";
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly signal: AbortSignal;
  /**
   * A redirect is never followed: it would turn the POST into a GET or carry the token elsewhere.
   */
  readonly redirect: "manual";
}

/** What the SDK needs of a Response. */
export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** `globalThis`, a service binding, or a test double. */
export interface Fetcher {
  fetch(url: string, init: FetchInit): Promise<FetchResponse>;
}

/** The credential, or a function that gives the current one; called before each query. */
export type TokenSource = string | (() => string | Promise<string>);

/** An answer as it came, before its body is understood. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string | null;
  /** Header `Server` or `Via`, cut to a length fit for a message. */
  readonly answeredBy: string | null;
  /** Header `Walgate-Token`. */
  readonly token: string | null;
  /** Header `Walgate-Served-By`. */
  readonly servedBy: string | null;
  readonly body: string;
}

/** A header of a stranger goes into an error message; longer says nothing more. */
const ANSWERED_BY_LENGTH_MAX = 100;

/**
 * Visible ASCII. Checked here since the runtime's own error for a bad header value repeats the
 * value.
 */
const CREDENTIAL = /^[\x21-\x7e]+$/;

export class Transport {
  readonly #url: URL;
  readonly #token: TokenSource | undefined;
  readonly #fetcher: Fetcher;

  constructor(url: URL, token: TokenSource | undefined, fetcher: Fetcher) {
    this.#url = url;
    this.#token = token;
    this.#fetcher = fetcher;
  }

  /**
   * Sends a statement with the read-after-write tokens it must not be older than.
   *
   * @throws ConnectionError when no complete answer comes; TypeError for a token that is no header
   * value.
   */
  async post(
    statement: Statement,
    sessionTokens: string | null,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const headers: Record<string, string> = {
      "Content-Type": "application/json",
      Accept: "application/json",
    };
    const credential = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (credential !== undefined) {
      if (!CREDENTIAL.test(credential)) {
        throw new TypeError("the token must be visible ASCII characters without spaces");
      }
      headers["Authorization"] = `Bearer ${credential}`;
    }
    if (sessionTokens !== null) {
      headers["Walgate-Token"] = sessionTokens;
    }
    const body = JSON.stringify({ query: statement.text, params: statement.params });
    try {
      const response = await this.#fetcher.fetch(this.#url.href, {
        method: "POST",
        headers,
        body,
        signal,
        redirect: "manual",
      });
      return await readResponse(response);
    } catch (error) {
      throw new ConnectionError(this.#url.origin, error);
    }
  }
}

async function readResponse(response: FetchResponse): Promise<HttpAnswer> {
  const { headers } = response;
  return {
    status: response.status,
    contentType: headers.get("Content-Type"),
    answeredBy:
      (headers.get("Server") ?? headers.get("Via"))?.slice(0, ANSWERED_BY_LENGTH_MAX) ?? null,
    token: headers.get("Walgate-Token"),
    servedBy: headers.get("Walgate-Served-By"),
    body: await response.text(),
  };
}
