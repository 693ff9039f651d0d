// What a visitor does with the example Worker, step by step, in real workerd. Runs under Bun and, bundled, under Node.js 20,
// so that it uses nothing of either that the other lacks.
import { setTimeout as sleep } from "node:timers/promises";
import {
  type RunningWorker,
  startWorker,
  type WorkerOptions,
} from "../../../wrangler-compat/testing/start-worker.ts";

/** More than the Worker gives its query, so that its own answer comes first. */
const REQUEST_TIMEOUT_MS = 15_000;
const POLL_TIMEOUT_MS = 15_000;
const POLL_INTERVAL_MS = 20;

/** What the steps ask of whoever owns the servers. */
export type ControlWord =
  "pause-replay" | "resume-replay" | "hold-commits" | "release-commits" | "stop-gateway";

export interface StepsInput {
  readonly worker: WorkerOptions;
  /** Takes a POST to /<word>, and answers 200 once it is done. */
  readonly controlUrl: string;
}

/** What a visitor was told. */
export interface Answer {
  readonly status: number;
  readonly servedBy: "primary" | "a replica" | "nobody";
  /** Whether the body holds the note that this visitor has written. */
  readonly hasNote: boolean;
}

export interface Failure {
  readonly status: number;
  readonly body: string;
}

export interface StepsReport {
  readonly whilePaused: { readonly write: Answer; readonly readWithCookie: Answer };
  readonly whileHeldBack: {
    readonly write: Answer;
    /** Of the write's cookie, behind its value. */
    readonly cookieAttributes: string;
    /** By what the reads carried. */
    readonly reads: Readonly<Record<string, Answer>>;
  };
  readonly onceReplayed: {
    readonly readWithCookie: Answer;
    /** Reads with the cookie, until a replica answered one, that lacked the note. */
    readonly readsWithoutNote: number;
  };
  readonly withoutGateway: { readonly read: Failure; readonly write: Failure };
  /** What the Workers have printed of their failures. */
  readonly printed: { readonly isAnError: boolean; readonly isASecret: boolean };
}

/** Two instances of one Worker: what the reader knows of a write, it has from the cookie. */
interface Site {
  readonly writer: RunningWorker;
  readonly reader: RunningWorker;
}

export async function runNotesSteps({ worker, controlUrl }: StepsInput): Promise<StepsReport> {
  const writer = await startWorker(worker);
  try {
    const reader = await startWorker(worker);
    try {
      return await takeSteps({ writer, reader }, worker, (word) => ask(controlUrl, word));
    } finally {
      await reader.stop();
    }
  } finally {
    await writer.stop();
  }
}

async function takeSteps(
  site: Site,
  worker: WorkerOptions,
  control: (word: ControlWord) => Promise<void>,
): Promise<StepsReport> {
  await replicaServes(site);
  await control("pause-replay");
  const early = await Visit.begin(site);
  const whilePaused = { write: early.write, readWithCookie: await early.read(early.cookie) };
  await control("resume-replay");

  await replicaServes(site);
  await control("hold-commits");
  const visit = await Visit.begin(site);
  const whileHeldBack = {
    write: visit.write,
    cookieAttributes: visit.cookieAttributes,
    reads: await readWithCookies(visit),
  };
  await control("release-commits");
  const onceReplayed = await readUntilReplayed(visit);

  await control("stop-gateway");
  const withoutGateway = {
    read: await toFailure(await send(site.reader, "GET", visit.cookie)),
    write: await toFailure(await send(site.writer, "POST", visit.cookie, visit.note)),
  };
  const printed = site.writer.log() + site.reader.log();
  const secrets = [worker.bindings["WALGATE_TOKEN"] ?? "", visit.token, visit.note];
  return {
    whilePaused,
    whileHeldBack,
    onceReplayed,
    withoutGateway,
    printed: {
      isAnError: printed.includes("ConnectionError"),
      isASecret: secrets.some((secret) => printed.includes(secret)),
    },
  };
}

/** A visitor who has written one note. */
class Visit {
  readonly note: string;
  readonly write: Answer;
  /** Name and value, as a browser sends them back. */
  readonly cookie: string;
  readonly cookieAttributes: string;
  readonly #site: Site;

  private constructor(site: Site, note: string, write: Answer, setCookie: string) {
    this.#site = site;
    this.note = note;
    this.write = write;
    const [cookie = "", ...attributes] = setCookie.split("; ");
    this.cookie = cookie;
    this.cookieAttributes = attributes.join("; ");
  }

  static async begin(site: Site): Promise<Visit> {
    const note = `note ${crypto.randomUUID()}`;
    const response = await send(site.writer, "POST", undefined, note);
    const setCookie = response.headers.get("Set-Cookie") ?? "";
    return new Visit(site, note, await toAnswer(response, note), setCookie);
  }

  get token(): string {
    return this.cookie.slice(this.cookie.indexOf("=") + 1);
  }

  async read(cookie: string | undefined): Promise<Answer> {
    return toAnswer(await send(this.#site.reader, "GET", cookie), this.note);
  }
}

async function readWithCookies(visit: Visit): Promise<Record<string, Answer>> {
  const { cookie, token } = visit;
  const withToken = (text: string): string => cookie.replace(token, text);
  const middle = Math.floor(token.length / 2);
  const cookies = {
    "its cookie": cookie,
    "its cookie among others": `theme=dark; ${cookie}; x${withToken("other")}`,
    "no cookie": undefined,
    "another cookie": `x${cookie}`,
    // Of the same length and alphabet, so that only the signature can tell.
    "a forged cookie": withToken(
      token.slice(0, middle) + (token[middle] === "A" ? "B" : "A") + token.slice(middle + 1),
    ),
    "half a cookie": withToken(token.slice(0, middle)),
    "a cookie that is no token": withToken("{}'%ZZ"),
    "a cookie of 5,000 characters": withToken("a".repeat(5_000)),
  };
  const reads: Record<string, Answer> = {};
  for (const [name, text] of Object.entries(cookies)) reads[name] = await visit.read(text);
  return reads;
}

async function readUntilReplayed(visit: Visit): Promise<StepsReport["onceReplayed"]> {
  let readsWithoutNote = 0;
  const readWithCookie = await pollFor("a replica serves the read with the cookie", async () => {
    const answer = await visit.read(visit.cookie);
    if (!answer.hasNote) readsWithoutNote++;
    return answer.servedBy === "a replica" ? answer : undefined;
  });
  return { readWithCookie, readsWithoutNote };
}

/** Waits until the gateway lets replicas serve reads. */
async function replicaServes(site: Site): Promise<void> {
  await pollFor("a replica serves reads", async () => {
    const { servedBy } = await toAnswer(await send(site.reader, "GET"), "");
    return servedBy === "a replica" ? servedBy : undefined;
  });
}

async function ask(controlUrl: string, word: ControlWord): Promise<void> {
  const response = await fetch(new URL(word, controlUrl), {
    method: "POST",
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
  });
  if (response.status !== 200) throw new Error(`${word}: ${await response.text()}`);
}

function send(
  worker: RunningWorker,
  method: string,
  cookie?: string,
  body?: string,
): Promise<Response> {
  return fetch(new URL("/notes", worker.url), {
    method,
    headers: cookie === undefined ? {} : { Cookie: cookie },
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    ...(body === undefined ? {} : { body }),
  });
}

async function toAnswer(response: Response, note: string): Promise<Answer> {
  const servedBy = response.headers.get("Walgate-Served-By") ?? "nobody";
  return {
    status: response.status,
    servedBy:
      servedBy === "primary" ? "primary" : servedBy.startsWith("replica:") ? "a replica" : "nobody",
    hasNote: (await response.text()).includes(note),
  };
}

async function toFailure(response: Response): Promise<Failure> {
  return { status: response.status, body: await response.text() };
}

async function pollFor<T>(what: string, check: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + POLL_TIMEOUT_MS;
  for (;;) {
    const value = await check();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`not within ${POLL_TIMEOUT_MS} ms: ${what}`);
    await sleep(POLL_INTERVAL_MS);
  }
}
