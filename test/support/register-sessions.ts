// Clients of every kind that write a number and read it back: over HTTP with a token, the wire, the WebSocket, and by the SDK.
import { Client as NeonClient } from "@neondatabase/serverless";
import { Client as PgClient } from "pg";
import { connect } from "../../sdk/src/connect.ts";
import type { TestGateway } from "./test-gateway.ts";

export type Surface = "http" | "wire" | "websocket" | "sdk";

/** The trusted profile's token comes from a probe in band, the untrusted one's from the oracle. */
export type Trust = "trusted" | "untrusted";

export interface RegisterRead {
  /** Undefined when there is no row. */
  readonly value: number | undefined;
  /** Where the surface says so: "primary" or "replica:NAME". */
  readonly servedBy: string | undefined;
}

/** One client with a register of its own, that nobody else writes. */
export interface RegisterSession {
  readonly surface: Surface;
  readonly key: string;
  write(value: number): Promise<void>;
  read(): Promise<RegisterRead>;
  close(): Promise<void>;
}

/** To be run as the role `app`. */
export const REGISTERS_TABLE =
  "create table registers (key text primary key, value integer not null)";

const WRITE =
  "insert into registers values ($1, $2) on conflict (key) do update set value = excluded.value";
const READ = "select value from registers where key = $1";

const ROLES = { trusted: "service", untrusted: "authenticated" } as const;
const USERS = { trusted: "app", untrusted: "app_user" } as const;

export interface HttpRegister extends RegisterSession {
  /** The latest answer's. */
  readonly token: string | null;
}

export async function httpRegister(
  gateway: TestGateway,
  trust: Trust,
  key: string,
): Promise<HttpRegister> {
  const authorization = `Bearer ${await gateway.token({ role: ROLES[trust] })}`;
  let token: string | null = null;
  const post = async (query: string, params: readonly string[]): Promise<HttpAnswer> => {
    const answer = await fetch(`${gateway.http}/v1/query`, {
      method: "POST",
      headers: {
        Authorization: authorization,
        ...(token === null ? {} : { "Walgate-Token": token }),
      },
      body: JSON.stringify({ query, params }),
    });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}: ${await answer.text()}`);
    token = answer.headers.get("walgate-token");
    const { rows }: { rows: (string | null)[][] } = JSON.parse(await answer.text());
    return { rows, servedBy: answer.headers.get("walgate-served-by") ?? undefined };
  };
  return {
    surface: "http",
    key,
    get token() {
      return token;
    },
    write: async (value) => {
      await post(WRITE, [key, String(value)]);
      if (token === null) throw new Error("a write over HTTP was answered without a token");
    },
    read: async () => {
      const { rows, servedBy } = await post(READ, [key]);
      return { value: toNumber(rows[0]?.[0]), servedBy };
    },
    close: () => Promise.resolve(),
  };
}

interface HttpAnswer {
  readonly rows: readonly (readonly (string | null)[])[];
  readonly servedBy: string | undefined;
}

export function sdkRegister(gateway: TestGateway, trust: Trust, key: string): RegisterSession {
  const db = connect({
    url: gateway.http,
    token: () => gateway.token({ role: ROLES[trust] }),
  });
  const session = db.session();
  return {
    surface: "sdk",
    key,
    write: async (value) => {
      await session`insert into registers values (${key}, ${value})
        on conflict (key) do update set value = excluded.value`;
    },
    read: async () => {
      const [row] = await session`select value from registers where key = ${key}`;
      return { value: toNumber(row?.["value"]), servedBy: undefined };
    },
    close: () => Promise.resolve(),
  };
}

export async function wireRegister(
  gateway: TestGateway,
  trust: Trust,
  key: string,
): Promise<RegisterSession> {
  const client = new PgClient({ connectionString: gateway.url(USERS[trust]) });
  await client.connect();
  return clientRegister("wire", key, {
    query: async (text, values) => (await client.query<RegisterRow>(text, values)).rows,
    end: () => client.end(),
  });
}

/** `isPipelined`: password and first query go out with the startup packet, before anything is answered. */
export async function webSocketRegister(
  gateway: TestGateway,
  trust: Trust,
  key: string,
  isPipelined: boolean,
): Promise<RegisterSession> {
  const client = neonClient(gateway, gateway.url(USERS[trust]), isPipelined);
  await client.connect();
  return clientRegister("websocket", key, {
    query: async (text, values) => (await client.query<RegisterRow>(text, values)).rows,
    end: () => client.end(),
  });
}

/** The serverless driver's client, led to the WebSocket of the gateway. */
export function neonClient(
  gateway: TestGateway,
  connectionString: string,
  isPipelined: boolean,
): NeonClient {
  const client = new NeonClient({ connectionString });
  client.neonConfig.wsProxy = () => `${new URL(gateway.http).host}/v2`;
  client.neonConfig.useSecureWebSocket = false;
  client.neonConfig.pipelineConnect = isPipelined ? "password" : false;
  return client;
}

interface RegisterRow {
  readonly value: number;
}

/** What the two drivers have in common. A query without values is a simple one. */
interface Driver {
  query(text: string, values?: (string | number)[]): Promise<RegisterRow[]>;
  end(): Promise<void>;
}

/** Reads by turns with a simple and with an extended query. */
function clientRegister(
  surface: "wire" | "websocket",
  key: string,
  driver: Driver,
): RegisterSession {
  let readCount = 0;
  return {
    surface,
    key,
    write: async (value) => {
      await driver.query(WRITE, [key, value]);
    },
    read: async () => {
      const isSimple = readCount++ % 2 === 0;
      const [row] = isSimple
        ? await driver.query(READ.replace("$1", `'${key}'`))
        : await driver.query(READ, [key]);
      return { value: row?.value, servedBy: undefined };
    },
    close: () => driver.end(),
  };
}

function toNumber(value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : Number(value);
}
