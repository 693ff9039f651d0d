// A client of the wire protocol: one session, one request after another, of every kind that a driver or a person sends.
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import {
  NO_PARAMETERS,
  type ParameterSet,
  parameterSet,
} from "#pool/session/startup-parameters.ts";
import { concatBytes } from "#pool/wire/message-types.ts";
import { client as message } from "#test/support/wire-frames.ts";
import { SYNC, parse, run } from "./client-frames.ts";
import { type Expected, Exchange } from "./exchange.ts";
import { sql } from "./server/statements.ts";
import { KEY_COUNT } from "./server/sim-server.ts";
import { KnownWrites, latestFirst } from "./known-writes.ts";
import { SimLink } from "./sim-link.ts";
import type { Actor, SimWorld } from "./sim-world.ts";

const THINK_MS_MAX = 190;
const LOCK_COUNT = 3;
/** Past what is kept of one unread answer. */
const BIG_BYTES = 300_000;
const LEAVE_SHARE = 0.01;
const CANCEL_SHARE = 0.01;
const UNREAD_SHARE = 0.01;
const UNREAD_MS = 400;
const STATEFUL_SHARE = 0.1;
const NAMED_SHARE = 0.2;

interface Request {
  readonly bytes: Uint8Array;
  readonly expected: readonly Expected[];
  readonly readyCount: number;
  /** Called when all of it was answered without an error. */
  readonly done?: (exchange: Exchange) => void;
}

export class WireClient implements Actor {
  readonly #world: SimWorld;
  readonly #profile: StartupProfile;
  readonly #id: number;
  readonly #link: SimLink;
  readonly #isStateful: boolean;
  readonly #replace: (left: WireClient) => void;
  #exchange: Exchange | undefined;
  #request: Request | undefined;
  #count = 0;
  #isInBlock = false;
  /** Transaction status of the latest ReadyForQuery. */
  #blockStatus = "I";
  #isGone = false;
  #isStopped = false;
  /** Own writes that were acknowledged, by key. */
  readonly #seen = new KnownWrites();
  /** Of the transaction that is open. */
  readonly #uncommitted = new Map<number, number>();
  readonly #prepared = new Set<string>();

  constructor(world: SimWorld, profile: StartupProfile, replace: (left: WireClient) => void) {
    this.#world = world;
    this.#profile = profile;
    this.#replace = replace;
    this.#id = world.nextClient();
    const { random } = world;
    this.#isStateful = random.chance(STATEFUL_SHARE);
    const parameters = random.chance(NAMED_SHARE) ? this.#named() : NO_PARAMETERS;
    const principal = profile.isTrusted ? "" : `tenant${random.below(3)}`;
    const gateway = world.pick(world.gateways);
    const identity = gateway.identity(profile, principal, parameters);
    this.#link = new SimLink(gateway, world.network, identity, [], {
      answer: (type, chunk, start, end) => this.#answer(type, chunk, start, end),
      ended: (reason) => this.#ended(reason),
    });
    world.register(this.#link);
  }

  get name(): string {
    return `client ${this.#id} (${this.#profile.name})`;
  }

  get waitingSince(): number | undefined {
    return this.#exchange?.sentAt;
  }

  start(): void {
    this.#think();
  }

  stop(): void {
    this.#isStopped = true;
    this.#link.goOnReading();
  }

  leave(): void {
    this.#leave(true);
  }

  #named(): ParameterSet {
    const name = `p${this.#id}`;
    this.#world.names.set(this.#id, name);
    const set = parameterSet([["application_name", name]]);
    if (!set.ok) throw new Error(set.message);
    return set.parameters;
  }

  #think(): void {
    const { clock, random } = this.#world;
    clock.schedule(random.next() * THINK_MS_MAX, () => this.#act());
  }

  #act(): void {
    if (this.#isGone || this.#exchange !== undefined) return;
    if (this.#isStopped && !this.#isInBlock) return;
    const { random, clock } = this.#world;
    const request = this.#isInBlock ? this.#inBlock() : this.#any();
    this.#send(request);
    if (random.chance(LEAVE_SHARE) && !this.#isStopped) {
      clock.schedule(random.next() * 4, () => this.#leave(random.chance(0.5)));
    } else if (random.chance(CANCEL_SHARE)) {
      clock.schedule(random.next() * 4, () => this.#link.cancel());
    } else if (random.chance(UNREAD_SHARE) && !this.#isStopped) {
      this.#link.stopReading();
      clock.schedule(random.next() * UNREAD_MS, () => this.#link.goOnReading());
    }
  }

  #send(request: Request): void {
    const { clock, findings } = this.#world;
    this.#world.counts.requests++;
    this.#request = request;
    this.#exchange = new Exchange(
      this.name,
      clock.now(),
      request.expected,
      request.readyCount,
      findings,
    );
    this.#link.send(request.bytes);
  }

  #any(): Request {
    const { random } = this.#world;
    const choice = random.below(100);
    if (choice < 25) return this.#simple(this.#read());
    if (choice < 38) return this.#simple(this.#write());
    if (choice < 50) return this.#unnamed(random.chance(0.6) ? this.#read() : this.#write());
    if (choice < 66) return this.#named_(random.chance(0.7) ? this.#read() : this.#write());
    if (choice < 76) return this.#pipeline();
    if (choice < 80) return this.#failing();
    if (choice < 82) return this.#big();
    if (choice < 92 && this.#profile.poolMode !== "statement") return this.#begin();
    if (choice < 96) return this.#show();
    return this.#isStateful && this.#profile.poolMode !== "statement"
      ? this.#state()
      : this.#simple(this.#read());
  }

  #inBlock(): Request {
    const { random } = this.#world;
    const choice = random.below(10);
    if (this.#isStopped || choice < 3) return this.#end(random.chance(0.8));
    return this.#simple(choice < 7 ? this.#write() : this.#read());
  }

  #expected(kind: Expected["kind"], key: number): Expected {
    const tag = `${this.#id}.${++this.#count}`;
    return { kind, tag, key, known: this.#knownOf(key) };
  }

  #knownOf(key: number): readonly number[] {
    const uncommitted = this.#uncommitted.get(key);
    const own = uncommitted === undefined ? this.#seen.of(key) : [uncommitted];
    const { consistency, poolMode } = this.#profile;
    if (consistency === "eventual") return uncommitted === undefined ? [] : own;
    const isFromPrimary = consistency === "primary" || poolMode === "session" || this.#isInBlock;
    return isFromPrimary ? latestFirst([...own, ...this.#world.acknowledged.of(key)]) : own;
  }

  #read(): Expected {
    const { random } = this.#world;
    const own = this.#seen.keys;
    const isOwn = own.length > 0 && random.chance(0.6);
    return this.#expected("read", isOwn ? this.#world.pick(own) : random.below(KEY_COUNT));
  }

  #write(): Expected {
    return this.#expected("write", this.#world.random.below(KEY_COUNT));
  }

  #simple(expected: Expected): Request {
    const { kind, tag, key } = expected;
    const text = kind === "read" ? sql.read(tag, key) : sql.write(tag, key);
    return { bytes: message.query(text), expected: [expected], readyCount: 1 };
  }

  #unnamed(expected: Expected): Request {
    const bytes = concatBytes([...this.#extended(expected, ""), SYNC]);
    return { bytes, expected: [expected], readyCount: 1 };
  }

  /** By a prepared statement that the client keeps, prepares first, or prepares again. */
  #named_(expected: Expected): Request {
    const name = `${expected.kind}${this.#world.random.below(3)}`;
    const isKnown = this.#prepared.has(name);
    const messages: Uint8Array[] = [];
    if (isKnown && this.#world.random.chance(0.05)) {
      messages.push(message.closeStatement(name), ...this.#extended(expected, name));
    } else if (isKnown) {
      messages.push(...this.#run(expected, name));
    } else {
      messages.push(...this.#extended(expected, name));
    }
    return {
      bytes: concatBytes([...messages, SYNC]),
      expected: [expected],
      readyCount: 1,
      done: () => void this.#prepared.add(name),
    };
  }

  #extended(expected: Expected, name: string): Uint8Array[] {
    return [parse(expected.kind === "read" ? "read" : "write", name), ...this.#run(expected, name)];
  }

  #run({ tag, key }: Expected, name: string): readonly Uint8Array[] {
    return run(name, tag, key);
  }

  /** Several segments, of which the later ones are sent before the earlier ones are answered. */
  #pipeline(): Request {
    const { random } = this.#world;
    const expected: Expected[] = [];
    const messages: Uint8Array[] = [];
    const segmentCount = 2 + random.below(3);
    for (let i = 0; i < segmentCount; i++) {
      const one = random.chance(0.7) ? this.#read() : this.#write();
      // What the pipeline itself writes is not acknowledged when it reads.
      expected.push(one);
      messages.push(...this.#extended(one, ""), SYNC);
    }
    return { bytes: concatBytes(messages), expected, readyCount: segmentCount };
  }

  #failing(): Request {
    return { bytes: message.query(sql.division), expected: [], readyCount: 1 };
  }

  #big(): Request {
    const expected = this.#expected("big", 0);
    return {
      bytes: message.query(sql.big(expected.tag, BIG_BYTES)),
      expected: [expected],
      readyCount: 1,
    };
  }

  #begin(): Request {
    return { bytes: message.query("BEGIN"), expected: [], readyCount: 1 };
  }

  #end(isCommit: boolean): Request {
    // COMMIT of a failed block is a ROLLBACK, and no error.
    const isDone = isCommit && this.#blockStatus === "T";
    return {
      bytes: message.query(isCommit ? "COMMIT" : "ROLLBACK"),
      expected: [],
      readyCount: 1,
      done: () => {
        if (isDone) for (const [key, stamp] of this.#uncommitted) this.#acknowledge(key, stamp);
      },
    };
  }

  #show(): Request {
    return {
      bytes: message.query(sql.showName),
      expected: [],
      readyCount: 1,
      done: ({ values }) => {
        const wanted = this.#world.names.get(this.#id) ?? "";
        if (values[0] === wanted) return;
        const detail = `${this.name} is called "${values[0]}" and not "${wanted}"`;
        this.#world.findings.report("no state carried over", detail);
      },
    };
  }

  /** Something that must not reach the next client. */
  #state(): Request {
    const { random, names } = this.#world;
    if (random.chance(0.5)) {
      const expected = this.#expected("lock", 0);
      const text = sql.lock(expected.tag, random.below(LOCK_COUNT));
      return { bytes: message.query(text), expected: [expected], readyCount: 1 };
    }
    const name = `s${this.#id}`;
    return {
      bytes: message.query(sql.setName(name)),
      expected: [],
      readyCount: 1,
      done: () => void names.set(this.#id, name),
    };
  }

  #answer(type: number, chunk: Uint8Array, start: number, end: number): void {
    if (this.#isGone) return;
    const exchange = this.#exchange;
    if (exchange === undefined) {
      this.#unasked(type);
      return;
    }
    exchange.answer(type, chunk, start, end);
    if (exchange.isDone) this.#done(exchange);
  }

  #done(exchange: Exchange): void {
    const request = this.#request;
    this.#exchange = undefined;
    this.#request = undefined;
    const { counts, trace } = this.#world;
    if (exchange.hasFailed) counts.errors++;
    if (this.#link.relay.servedBy?.role === "replica") counts.replicaReads++;
    trace.note(
      `${this.name} done ${exchange.status} ${exchange.rows.map(({ stamp }) => stamp).join(" ")} ${exchange.sqlStates.join(" ")}`,
    );
    this.#judge(exchange);
    const wasInBlock = this.#isInBlock;
    if (!exchange.hasFailed) request?.done?.(exchange);
    this.#blockStatus = exchange.status;
    this.#isInBlock = exchange.status !== "I";
    if (wasInBlock && !this.#isInBlock) this.#uncommitted.clear();
    this.#think();
  }

  #judge(exchange: Exchange): void {
    const isAutocommit = !this.#isInBlock && exchange.status === "I" && !exchange.hasFailed;
    for (const { expected, stamp } of exchange.rows) {
      const { kind, key, known } = expected;
      if (kind === "read") this.#world.checkRead(this.name, key, known, stamp);
      if (kind === "write" && isAutocommit) this.#acknowledge(key, stamp);
      if (kind === "write" && this.#isInBlock) this.#uncommitted.set(key, stamp);
    }
  }

  #acknowledge(key: number, stamp: number): void {
    this.#seen.note(key, stamp);
    this.#world.wrote(key, stamp);
  }

  /** Nothing was asked: only news of the server may come, and the end. */
  #unasked(type: number): void {
    const letter = String.fromCharCode(type);
    if ("SNE".includes(letter)) return;
    this.#world.findings.report("own answers", `${this.name} asked nothing and got ${letter}`);
  }

  #ended(reason: string | undefined): void {
    if (reason !== undefined)
      this.#world.findings.report("valid protocol", `${this.name}: ${reason}`);
    this.#leave(true);
  }

  #leave(isOrderly: boolean): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#exchange = undefined;
    this.#world.trace.note(`${this.name} leaves`);
    this.#link.leave(isOrderly);
    this.#replace(this);
  }
}
