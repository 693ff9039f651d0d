// What the two handlers of the bench share: their settings and the shape of a request, trusted as a quick handler would.

export interface HandlerSettings {
  readonly port: number;
  readonly url: string;
  readonly poolSize: number;
  /** The whole header. */
  readonly authorization: string;
}

export function readSettings(): HandlerSettings {
  const { BENCH_PORT, BENCH_DATABASE, BENCH_POOL_SIZE, BENCH_BEARER } = process.env;
  if (BENCH_DATABASE === undefined) throw new Error("this program is started by the bench");
  return {
    port: Number(BENCH_PORT),
    url: BENCH_DATABASE,
    poolSize: Number(BENCH_POOL_SIZE),
    authorization: `Bearer ${BENCH_BEARER}`,
  };
}

export interface HandlerQuery {
  readonly query: string;
  readonly params: unknown[];
}

export async function readQuery(request: Request): Promise<HandlerQuery> {
  return (await request.json()) as HandlerQuery;
}
