// A fetcher in place of the gateway: keeps each request and answers it when and as the test says.
import type { Fetcher, FetchInit, FetchResponse } from "../../sdk/src/transport.ts";

/** What reached the gateway, without the signal. */
export interface SeenRequest {
  readonly url: string;
  readonly method: string;
  readonly redirect: string;
  readonly headers: Record<string, string>;
  readonly body: unknown;
}

export interface PendingRequest extends SeenRequest {
  readonly signal: AbortSignal;
  answer(response: FetchResponse): void;
  fail(error: unknown): void;
}

/** Takes no notice of the signal, so that a test sees which waits the SDK bounds itself. */
export class FakeGateway implements Fetcher {
  readonly pending: PendingRequest[] = [];
  readonly #respond: ((request: SeenRequest) => FetchResponse) | null;

  /** Without `respond`, each request waits in `pending` for its answer. */
  constructor(respond: ((request: SeenRequest) => FetchResponse) | null = null) {
    this.#respond = respond;
  }

  get seen(): SeenRequest[] {
    return this.pending.map(({ url, method, redirect, headers, body }) => {
      return { url, method, redirect, headers, body };
    });
  }

  fetch(url: string, init: FetchInit): Promise<FetchResponse> {
    const { method, redirect, headers, signal } = init;
    const body: unknown = JSON.parse(init.body);
    const request = { url, method, redirect, headers, body };
    return new Promise((resolve, reject) => {
      this.pending.push({ ...request, signal, answer: resolve, fail: reject });
      if (this.#respond !== null) {
        resolve(this.#respond(request));
      }
    });
  }

  /** The request at an index, once it has arrived. */
  async arrival(index: number): Promise<PendingRequest> {
    for (let turn = 0; turn < ARRIVAL_TURNS_MAX; turn += 1) {
      const request = this.pending[index];
      if (request !== undefined) {
        return request;
      }
      await Promise.resolve();
    }
    throw new Error(`request ${index} has not arrived`);
  }
}

/** Microtasks after which a request that needs no timer must have arrived. */
const ARRIVAL_TURNS_MAX = 1000;

/** Lets everything run that waits for microtasks only. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < ARRIVAL_TURNS_MAX; turn += 1) {
    await Promise.resolve();
  }
}

export function jsonResponse(
  body: unknown,
  headers: Record<string, string> = {},
  status: number = 200,
): Response {
  return Response.json(body, { status, headers });
}

/** An answer with one int4 column n. */
export function numbersResponse(
  numbers: readonly number[],
  headers: Record<string, string> = {},
): Response {
  return jsonResponse(
    {
      columns: [{ name: "n", type: 23 }],
      rows: numbers.map((number) => [String(number)]),
      command: "SELECT",
      rowCount: numbers.length,
    },
    headers,
  );
}

/** All 17 keys of an error answer; those that are not given are null. */
export function errorBody(fields: Record<string, string>): Record<string, string | null> {
  return {
    message: null,
    code: null,
    detail: null,
    hint: null,
    position: null,
    internalPosition: null,
    internalQuery: null,
    severity: null,
    where: null,
    table: null,
    column: null,
    schema: null,
    dataType: null,
    constraint: null,
    file: null,
    line: null,
    routine: null,
    ...fields,
  };
}
