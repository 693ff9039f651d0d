// An example Worker: notes written and listed through a walgate gateway. Whoever writes a note finds it in their next list,
// whichever server answers, because the token of the write comes back in a cookie.
import {
  connect,
  ConnectionError,
  DatabaseError,
  type Session,
  TimeoutError,
  UnexpectedResponseError,
} from "@walgate/sdk";
import { openSession, tokenCookie } from "./token-cookie.ts";

/** The Worker's bindings. */
export interface Env {
  /** Address of the gateway's HTTP door. */
  readonly WALGATE_URL: string;
  /** The Worker's credential at the gateway, a JWT. A secret, so it never stands in `vars`. */
  readonly WALGATE_TOKEN: string;
}

/** Visitors do not wait as long as the minute that the SDK allows by default. */
const QUERY_TIMEOUT_MS = 10_000;
/** A page of text. It also bounds what one request makes the Worker hold in memory. */
const NOTE_BYTES_MAX = 4_000;

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (new URL(request.url).pathname !== "/notes") return problem(404, "there is only /notes");
    // Opens nothing: each query is one HTTP request. Throws for a binding that is missing or no URL.
    const db = connect({
      url: env.WALGATE_URL,
      token: env.WALGATE_TOKEN,
      timeoutMs: QUERY_TIMEOUT_MS,
    });
    const session = openSession(db, request.headers.get("Cookie"));
    const known = session.token;
    const response = await answer(session, request).catch((error: unknown) =>
      failure(error, request.method),
    );
    // After an error too: it may bring the token of a write that was committed.
    if (session.token !== null && session.token !== known) {
      response.headers.append("Set-Cookie", tokenCookie(session.token));
    }
    return response;
  },
};

async function answer(session: Session, request: Request): Promise<Response> {
  switch (request.method) {
    case "GET":
      return listNotes(session);
    case "POST":
      return addNote(session, request);
    default:
      return problem(405, "/notes takes GET and POST", { Allow: "GET, POST" });
  }
}

async function listNotes(session: Session): Promise<Response> {
  const { rows, servedBy } = await session`
    select id, body from notes order by id desc limit 20`.result();
  return json(200, rows, servedBy);
}

async function addNote(session: Session, request: Request): Promise<Response> {
  const size = request.headers.get("Content-Length");
  if (size === null) return problem(411, "the length of the note must be known");
  if (Number(size) > NOTE_BYTES_MAX) {
    return problem(413, `a note has at most ${NOTE_BYTES_MAX} bytes`);
  }
  const body = (await request.text()).trim();
  if (body === "") return problem(400, "a note must not be empty");
  const { rows, servedBy } = await session`
    insert into notes (body) values (${body}) returning id, body`.result();
  return json(201, rows[0], servedBy);
}

/** The log gets the details; the SDK keeps credentials and tokens out of its errors. The visitor gets what they can act on. */
function failure(error: unknown, method: string): Response {
  // PostgreSQL's classes "data exception" and "integrity constraint violation": the visitor's text is at fault.
  if (error instanceof DatabaseError && /^2[23]/.test(error.code)) {
    return problem(400, "the database does not take this note");
  }
  console.error(error instanceof DatabaseError ? `${error.code} ${error}` : String(error));
  if (
    error instanceof ConnectionError ||
    error instanceof TimeoutError ||
    error instanceof UnexpectedResponseError
  ) {
    const fate = method === "POST" ? "; the note may have been stored all the same" : "";
    return problem(502, `the database does not answer${fate}`);
  }
  if (error instanceof DatabaseError && error.status === 503) {
    return problem(503, "the database is busy; try again", { "Retry-After": "1" });
  }
  return problem(500, "the notes cannot be used now");
}

function problem(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ error: message }, { status, headers });
}

function json(status: number, value: unknown, servedBy: string | null): Response {
  // What one visitor must see depends on the cookie: no cache may answer in the Worker's place.
  const headers = new Headers({ "Cache-Control": "no-store" });
  if (servedBy !== null) headers.set("Walgate-Served-By", servedBy);
  return Response.json(value, { status, headers });
}
