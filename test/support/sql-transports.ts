// The ways to send a statement: to PostgreSQL itself, and through the gateway's wire, WebSocket and HTTP doors.
import { type CustomTypesConfig, type QueryArrayConfig, Client as PgClient } from "pg";
import { neonClient } from "./register-sessions.ts";
import {
  type Cell,
  type QueryMode,
  type ResultField,
  type SqlOutcome,
  type SqlStatement,
  type View,
  failureOf,
  inlined,
} from "./sql-outcome.ts";
import type { TestGateway } from "./test-gateway.ts";

export interface SqlTransport {
  readonly name: string;
  readonly view: View;
  modeOf(statement: SqlStatement): QueryMode;
  run(statement: SqlStatement): Promise<SqlOutcome>;
  close(): Promise<void>;
}

/** Opens a connection for each statement and closes it behind. `shape` is one of the same kind. */
export function onFreshConnections(
  open: () => Promise<SqlTransport>,
  shape: SqlTransport,
): SqlTransport {
  return {
    ...shape,
    run: async (statement) => {
      const transport = await open();
      try {
        return await transport.run(statement);
      } finally {
        await transport.close();
      }
    },
    close: () => Promise.resolve(),
  };
}

/** Cells stay as they came. */
const RAW: CustomTypesConfig = { getTypeParser: () => (text: Cell) => text };

/** What both drivers have: node-postgres, and the serverless driver that contains an older one. */
interface Driver {
  connect(): Promise<unknown>;
  query(config: DriverQuery): Promise<DriverResult>;
  end(): Promise<void>;
}

interface DriverQuery extends QueryArrayConfig {
  /** Known to node-postgres only; the older one sends simple queries unless there are values. */
  readonly queryMode?: "extended";
}

interface DriverResult {
  readonly fields: readonly Required<ResultField>[];
  readonly rows: readonly (readonly Cell[])[];
}

export function pgTransport(
  name: string,
  connectionString: string,
  mode: QueryMode,
): Promise<SqlTransport> {
  const client = new PgClient({ connectionString });
  const driver: Driver = {
    connect: () => client.connect(),
    query: (config) => client.query<Cell[]>(config),
    end: () => client.end(),
  };
  return driverTransport(name, driver, client, () => mode);
}

export function webSocketTransport(
  name: string,
  gateway: TestGateway,
  connectionString: string,
  isPipelined: boolean,
): Promise<SqlTransport> {
  const client = neonClient(gateway, connectionString, isPipelined);
  const driver: Driver = {
    connect: () => client.connect(),
    query: (config) => client.query<Cell[]>(config),
    end: () => client.end(),
  };
  return driverTransport(name, driver, client, ({ params }) =>
    params.length > 0 ? "extended" : "simple",
  );
}

async function driverTransport(
  name: string,
  driver: Driver,
  client: object,
  modeOf: (statement: SqlStatement) => QueryMode,
): Promise<SqlTransport> {
  let tag: string | null = null;
  await driver.connect();
  // The drivers give away parts of the tag only.
  onCommandComplete(client, (text) => {
    tag = text;
  });
  return {
    name,
    view: "wire",
    modeOf,
    run: async (statement) => {
      tag = null;
      try {
        const { fields, rows } = await driver.query(driverQuery(statement, modeOf(statement)));
        return {
          kind: "result",
          fields: fields.map(fieldOf),
          rows,
          ...partsOf(tag),
          tag,
        };
      } catch (error) {
        return failureOf(error);
      }
    },
    close: () => driver.end(),
  };
}

/** Without the format, which the drivers do not agree about. */
function fieldOf(field: Required<ResultField>): ResultField {
  const { name, tableID, columnID, dataTypeID, dataTypeSize, dataTypeModifier } = field;
  return { name, tableID, columnID, dataTypeID, dataTypeSize, dataTypeModifier };
}

function driverQuery(statement: SqlStatement, mode: QueryMode): DriverQuery {
  if (mode === "simple") return { text: inlined(statement), rowMode: "array", types: RAW };
  const { text, params } = statement;
  return { text, values: [...params], rowMode: "array", types: RAW, queryMode: "extended" };
}

function partsOf(tag: string | null): {
  readonly command: string;
  readonly rowCount: number | null;
} {
  const count = /\d+$/.exec(tag ?? "")?.[0];
  return {
    command: tag?.split(" ")[0] ?? "",
    rowCount: count === undefined ? null : Number(count),
  };
}

interface CommandCompletes {
  on(event: "commandComplete", listener: (message: { readonly text: string }) => void): unknown;
}

function onCommandComplete(client: object, listener: (tag: string) => void): void {
  const connection: unknown = Reflect.get(client, "connection");
  if (!isEmitter(connection)) throw new Error("the driver shows no connection");
  connection.on("commandComplete", ({ text }) => listener(text));
}

function isEmitter(value: unknown): value is CommandCompletes {
  return typeof value === "object" && value !== null && "on" in value;
}

/** POST /sql with a connection string, as the serverless driver does. */
export function sqlTransport(gateway: TestGateway, connectionString: string): SqlTransport {
  const headers = {
    "Neon-Connection-String": connectionString,
    "Neon-Raw-Text-Output": "true",
    "Neon-Array-Mode": "true",
  };
  return httpTransport("HTTP /sql", "sql", `${gateway.http}/sql`, headers, (body) => ({
    fields: body.fields.map(fieldOf),
    rows: body.rows,
    command: body.command,
    rowCount: body.rowCount,
  }));
}

/** POST /v1/query with a JWT. */
export function queryTransport(gateway: TestGateway, jwt: string): SqlTransport {
  const headers = { Authorization: `Bearer ${jwt}` };
  return httpTransport("HTTP /v1/query", "query", `${gateway.http}/v1/query`, headers, (body) => ({
    fields: body.columns.map(({ name, type }) => ({ name, dataTypeID: type })),
    rows: body.rows,
    command: body.command,
    rowCount: body.rowCount,
  }));
}

/** Of both doors; each fills its own list of fields. */
interface HttpBody {
  readonly fields: readonly Required<ResultField>[];
  readonly columns: readonly { readonly name: string; readonly type: number }[];
  readonly rows: readonly (readonly Cell[])[];
  readonly command: string;
  readonly rowCount: number | null;
}

function httpTransport(
  name: string,
  view: View,
  url: string,
  headers: Readonly<Record<string, string>>,
  read: (body: HttpBody) => Omit<Extract<SqlOutcome, { kind: "result" }>, "kind" | "tag">,
): SqlTransport {
  return {
    name,
    view,
    modeOf: () => "extended",
    run: async ({ text, params }) => {
      const body = JSON.stringify({ query: text, params });
      const answer = await fetch(url, { method: "POST", headers, body });
      const answered = await answer.text();
      return answer.ok
        ? { kind: "result", ...read(JSON.parse(answered)) }
        : failureOf(JSON.parse(answered));
    },
    close: () => Promise.resolve(),
  };
}
