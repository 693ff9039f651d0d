// Requests to the HTTP door as tests make them, and their answers as plain data.
import type { Cluster } from "#gateway/embedded/cluster.ts";
import type { TestGateway } from "#test/support/test-gateway.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export function connectionString(cluster: Cluster, query = ""): string {
  return `postgresql://app:${encodeURIComponent(cluster.passwords.app)}@db.example/app${query}`;
}

export async function post(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers,
    ...(signal === undefined ? {} : { signal }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** POST /sql as the serverless driver sends it, with a connection string. */
export function postSql(
  gateway: TestGateway,
  cluster: Cluster,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return post(`${gateway.http}/sql`, body, {
    "Neon-Connection-String": connectionString(cluster),
    "Neon-Raw-Text-Output": "true",
    "Neon-Array-Mode": "true",
    ...headers,
  });
}

/** POST /v1/query with a development token. */
export async function postQuery(
  gateway: TestGateway,
  query: string,
  params: readonly (string | null)[] = [],
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const authorization = `Bearer ${await gateway.token()}`;
  return post(
    `${gateway.http}/v1/query`,
    { query, params },
    { Authorization: authorization, ...headers },
  );
}

/** Polls until `check` is true; fails after 10 s. */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error("it did not happen within 10 s");
    await Bun.sleep(10);
  }
}

/** A socket that says `text` and gives back all it hears until the peer closes. */
export async function rawHttp(gateway: TestGateway, text: string): Promise<string> {
  const url = new URL(gateway.http);
  const chunks: Buffer[] = [];
  const closed = Promise.withResolvers<void>();
  await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      open: (socket) => {
        socket.write(Buffer.from(text, "latin1"));
      },
      data: (_socket, chunk) => {
        chunks.push(Buffer.from(chunk));
      },
      close: () => closed.resolve(),
      error: (_socket, error) => closed.reject(error),
    },
  });
  await closed.promise;
  return Buffer.concat(chunks).toString();
}
