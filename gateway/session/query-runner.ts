// Runs the statements of one HTTP request, alone or as one transaction, and mints the token that goes with the answer.
import { hasSameHistory, mergePositions } from "#pool/consistency/merge-positions.ts";
import type { Position } from "#pool/consistency/position.ts";
import { tokenAudience } from "#pool/consistency/token-audience.ts";
import { PoolError } from "#pool/errors.ts";
import type { RelayIdentity } from "#pool/session/relay-environment.ts";
import type { StatementClass } from "#pool/sql/statement-class.ts";
import { encodeStatement } from "#pool/wire/statement-messages.ts";
import { type GatewayContext, type ResolvedIdentity, primaryOnly } from "./gateway-context.ts";
import { type ExchangeAnswer, type QueryClient, QueryExchange } from "./query-exchange.ts";
import { JsonBytes } from "./json-bytes.ts";
import type { RowFormat } from "./result-json.ts";
import type { ResultShapes } from "./result-shape.ts";
import { type ServerError, poolError } from "./server-error.ts";
import type { SharedTimer } from "./shared-timer.ts";
import {
  BATCH_STATEMENTS_MAX,
  batchFault,
  refusalOf,
  tooManyStatements,
} from "./statement-rules.ts";
import { Turn } from "./turn.ts";

export interface StatementRequest {
  readonly text: string;
  /** PostgreSQL's text, or null. */
  readonly params: readonly (string | null)[];
  readonly format: RowFormat;
}

export type IsolationLevel =
  "READ UNCOMMITTED" | "READ COMMITTED" | "REPEATABLE READ" | "SERIALIZABLE";

export interface TransactionOptions {
  readonly isolation: IsolationLevel | undefined;
  readonly isReadOnly: boolean;
  readonly isDeferrable: boolean;
}

export interface QueryRequest {
  readonly identity: ResolvedIdentity;
  /** Exactly one unless `transaction` is given. */
  readonly statements: readonly StatementRequest[];
  /** All statements run in one transaction of this kind. */
  readonly transaction: TransactionOptions | undefined;
  /** Read-after-write tokens, joined by commas. */
  readonly token: string | undefined;
  /** When it goes away, what runs is cancelled in PostgreSQL. */
  readonly client: QueryClient;
  readonly clientWatch: SharedTimer;
  /** For the results as JSON. */
  readonly responseBytesMax: number;
  readonly shapes: ResultShapes;
  /** What stands around the results of a batch; empty texts for a single statement. */
  readonly brackets: readonly [opening: string, closing: string];
}

export type QueryOutcome =
  | { readonly ok: true; readonly body: JsonBytes }
  | { readonly ok: false; readonly error: ServerError };

export interface QueryRun {
  readonly outcome: QueryOutcome;
  /** A read that carries it is not older than this request and those before it. */
  readonly token: string | undefined;
  /** "primary" or "replica:NAME"; undefined when no server was asked. */
  readonly servedBy: string | undefined;
}

/** Errors of PostgreSQL, of the pool and about the request are data; only a bug throws. */
export async function runQueries(
  context: GatewayContext,
  request: QueryRequest,
): Promise<QueryRun> {
  const { profile, tenant } = request.identity;
  const audience = tokenAudience(profile.database, tenant);
  const asked = readToken(context, request, audience);
  const answer = await answerOf(context, request, asked);
  const gained =
    answer.position === undefined && asked.positions.length > 0
      ? await reissued(context, request, asked, answer)
      : answer.position;
  const positions =
    gained === undefined ? asked.positions : mergePositions(superseding(asked, gained), [gained]);
  return {
    outcome: outcomeOf(context, request, answer),
    token: positions.length === 0 ? undefined : context.tokens.mint(positions, audience),
    servedBy: answer.servedBy,
  };
}

/** A request has at most one. */
const STATEMENT_NAME = "s";

const COMMIT = { text: "COMMIT", params: [] };

/** What the caller's token comes to. */
interface Asked {
  readonly identity: RelayIdentity;
  readonly positions: readonly Position[];
}

/** A token that does not verify is no error, but what it asks for is not known: only the primary is surely not older. */
function readToken(context: GatewayContext, request: QueryRequest, audience: string): Asked {
  const { relay } = request.identity;
  if (request.token === undefined) return { identity: relay, positions: [] };
  const reading = context.tokens.read(request.token, audience);
  if (reading.ok) return { identity: relay, positions: reading.positions };
  const { routes } = context.environment.counters;
  const reason = `token_${reading.reason}`;
  routes.set(reason, (routes.get(reason) ?? 0) + 1);
  return { identity: { ...relay, profile: primaryOnly(relay.profile) }, positions: [] };
}

/** A position is one round trip on a connection of our own; past this the answer goes out with the old token. */
const REISSUE_TIMEOUT_MS = 2_000;

/**
 * A token of another history, as after a failover, sends its reads to the primary. The primary's own position takes its place, or the
 * caller would never get back to the replicas.
 */
async function reissued(
  context: GatewayContext,
  request: QueryRequest,
  asked: Asked,
  answer: ExchangeAnswer,
): Promise<Position | undefined> {
  const cluster = context.clusters.get(request.identity.profile.database);
  const primary = cluster?.snapshot().find(({ role }) => role === "primary")?.position;
  const isForeign =
    primary !== undefined && asked.positions.some((position) => !hasSameHistory(position, primary));
  if (cluster === undefined || !isForeign || answer.servedBy !== "primary") return undefined;
  try {
    return await cluster.oracle(context.environment.clock.now() + REISSUE_TIMEOUT_MS);
  } catch (error) {
    if (error instanceof PoolError) return undefined;
    throw error;
  }
}

/** What the primary's position does not replace: a later timeline of its own system, which another gateway may know. */
function superseding(asked: Asked, gained: Position): readonly Position[] {
  return asked.positions.filter(
    ({ systemIdentifier, timeline }) =>
      systemIdentifier === gained.systemIdentifier && timeline >= gained.timeline,
  );
}

async function answerOf(
  context: GatewayContext,
  request: QueryRequest,
  asked: Asked,
): Promise<ExchangeAnswer> {
  const refusal = await refusalOfAny(context, request);
  if (refusal !== undefined || request.statements.length === 0) return unasked(request, refusal);
  const fault =
    asked.identity.parameters.entries.size === 0
      ? undefined
      : await parameterFault(context, asked.identity);
  return fault === undefined ? exchanged(context, request, asked) : unasked(request, fault);
}

/** At once for a single statement; texts of a batch may take a second to read. */
function refusalOfAny(
  context: GatewayContext,
  { statements, transaction }: QueryRequest,
): ServerError | undefined | Promise<ServerError | undefined> {
  const { classifier, clock } = context.environment;
  const classify = (text: string): StatementClass => classifier.classify(text);
  if (transaction !== undefined) return refusalOfBatch(classify, statements, new Turn(clock));
  const [statement] = statements;
  return statement === undefined ? undefined : refusalOf(classify, statement, false);
}

async function refusalOfBatch(
  classify: (text: string) => StatementClass,
  statements: readonly StatementRequest[],
  turn: Turn,
): Promise<ServerError | undefined> {
  if (statements.length > BATCH_STATEMENTS_MAX) return tooManyStatements();
  for (const statement of statements) {
    if (turn.isOver) await turn.pause();
    const refusal = refusalOf(classify, statement, true);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/**
 * A single statement that comes often is prepared under a name, which all requests share on a server connection. The caller knows nothing
 * of that: where the kept plan does not fit any more, it has not begun to run, and runs once again without a name.
 */
async function exchanged(
  context: GatewayContext,
  request: QueryRequest,
  asked: Asked,
): Promise<ExchangeAnswer> {
  const [statement] = request.statements;
  const isPrepared =
    request.transaction === undefined &&
    asked.identity.profile.isTrusted &&
    statement !== undefined &&
    context.repeatedTexts.isFrequent(statement.text);
  const answer = await exchangedOnce(context, request, asked, isPrepared);
  return isPrepared && isPlanOutdated(answer.error)
    ? exchangedOnce(context, request, asked, false)
    : answer;
}

/** After ALTER TABLE a kept plan may have another result; and a function may have deallocated all statements, ours among them. */
function isPlanOutdated(error: ServerError | undefined): boolean {
  return (
    (error?.code === "0A000" && error.routine === "RevalidateCachedQuery") ||
    (error?.code === "26000" && error.routine === "FetchPreparedStatement")
  );
}

function exchangedOnce(
  context: GatewayContext,
  request: QueryRequest,
  asked: Asked,
  isPrepared: boolean,
): Promise<ExchangeAnswer> {
  const { statements, transaction, client, clientWatch, responseBytesMax, shapes, brackets } =
    request;
  const formats = statements.map(({ format }) => format);
  const exchange = new QueryExchange({
    environment: context.environment,
    identity: asked.identity,
    positions: asked.positions,
    client,
    clientWatch,
    frameBytesMax: context.config.gateway.max_packet_size,
    responseBytesMax,
    shapes,
    // START TRANSACTION and COMMIT are no part of the answer.
    formats: transaction === undefined ? formats : [undefined, ...formats, undefined],
    opening: brackets[0],
  });
  if (transaction === undefined) {
    const name = isPrepared ? STATEMENT_NAME : "";
    return exchange.run([
      statements.map(({ text, params }) => encodeStatement({ name, text, params })),
    ]);
  }
  // Two Syncs, one write: after an error COMMIT still runs, as a rollback, and leaves nothing to be done.
  const texts = [{ text: startText(transaction), params: [] }, ...statements];
  return exchange.run([texts.map(encodeStatement), [encodeStatement(COMMIT)]]);
}

function unasked(request: QueryRequest, error: ServerError | undefined): ExchangeAnswer {
  const body = new JsonBytes();
  body.text(request.brackets[0]);
  return { results: [], body, error, position: undefined, servedBy: undefined };
}

/** Settings of the connection string are tried out before a statement depends on them; sets that were good are remembered. */
async function parameterFault(
  context: GatewayContext,
  identity: RelayIdentity,
): Promise<ServerError | undefined> {
  try {
    await context.greetings.get(identity);
    return undefined;
  } catch (error) {
    if (error instanceof PoolError) return poolError(error);
    throw error;
  }
}

function outcomeOf(
  context: GatewayContext,
  request: QueryRequest,
  answer: ExchangeAnswer,
): QueryOutcome {
  const { results, body, error } = answer;
  if (error !== undefined) return { ok: false, error };
  const { statements, transaction } = request;
  if (transaction !== undefined && statements.length > 0) {
    const { classifier } = context.environment;
    const fault = batchFault((text) => classifier.classify(text), statements, results);
    if (fault !== undefined) return { ok: false, error: fault };
  }
  body.text(request.brackets[1]);
  return { ok: true, body };
}

function startText({ isolation, isReadOnly, isDeferrable }: TransactionOptions): string {
  const modes: string[] = [];
  if (isolation !== undefined) modes.push(`ISOLATION LEVEL ${isolation}`);
  if (isReadOnly) modes.push("READ ONLY");
  if (isDeferrable) modes.push("DEFERRABLE");
  return modes.length === 0 ? "START TRANSACTION" : `START TRANSACTION ${modes.join(", ")}`;
}
