// A caller as a serverless function is one: each request is a session of its own, at any gateway, with tokens instead of memory.
import type { StartupProfile } from "#pool/connections/startup-profile.ts";
import type { Position } from "#pool/consistency/position.ts";
import { tokenAudience } from "#pool/consistency/token-audience.ts";
import { NO_PARAMETERS } from "#pool/session/startup-parameters.ts";
import { Frontend, concatBytes } from "#pool/wire/message-types.ts";
import { SYNC, parse, run } from "./client-frames.ts";
import { type Expected, Exchange } from "./exchange.ts";
import { latestFirst } from "./known-writes.ts";
import { KEY_COUNT } from "./server/sim-server.ts";
import type { SimGateway } from "./sim-gateway.ts";
import { SimLink } from "./sim-link.ts";
import type { Actor, SimWorld } from "./sim-world.ts";

const THINK_MS_MAX = 150;
const TOKENS_MAX = 3;
const READ_SHARE = 0.65;
const ABANDON_SHARE = 0.01;
const AUDIENCE = tokenAudience("sim", "tenant");

interface Running {
  readonly gateway: SimGateway;
  readonly link: SimLink;
  readonly exchange: Exchange;
  readonly expected: Expected;
  isAnswered: boolean;
  /** The gateway has said what position it found, or that there is none. */
  isPlaced: boolean;
  position: Position | undefined;
}

export class TokenCaller implements Actor {
  readonly #world: SimWorld;
  readonly #profile: StartupProfile;
  readonly #id: number;
  #count = 0;
  #running: Running | undefined;
  #isStopped = false;

  constructor(world: SimWorld, profile: StartupProfile) {
    this.#world = world;
    this.#profile = profile;
    this.#id = world.nextClient();
  }

  get name(): string {
    return `caller ${this.#id} (${this.#profile.name})`;
  }

  get waitingSince(): number | undefined {
    return this.#running?.exchange.sentAt;
  }

  start(): void {
    const { clock, random } = this.#world;
    clock.schedule(random.next() * THINK_MS_MAX, () => this.#request());
  }

  stop(): void {
    this.#isStopped = true;
  }

  leave(): void {
    this.#isStopped = true;
    const running = this.#running;
    this.#running = undefined;
    running?.link.leave(true);
  }

  #request(): void {
    if (this.#isStopped) return;
    const { random, clock, findings, network, counts } = this.#world;
    const gateway = this.#world.pick(this.#world.gateways);
    const tokens = Array.from({ length: random.below(TOKENS_MAX + 1) }, () =>
      this.#world.tokens.length === 0 ? undefined : this.#world.pick(this.#world.tokens),
    ).filter((token) => token !== undefined);
    const key = tokens[0]?.key ?? random.below(KEY_COUNT);
    const known = latestFirst(tokens.filter((t) => t.key === key).map(({ stamp }) => stamp));
    const kind = random.chance(READ_SHARE) ? "read" : "write";
    const expected: Expected = { kind, tag: `${this.#id}.${++this.#count}`, key, known };
    counts.requests++;
    if (kind === "read" && tokens.length > 0) counts.tokenReads++;
    const positions = this.#positionsOf(
      gateway,
      tokens.map(({ text }) => text),
    );
    const identity = gateway.identity(this.#profile, "", NO_PARAMETERS);
    const exchange = new Exchange(this.name, clock.now(), [expected], 1, findings);
    const link = new SimLink(gateway, network, identity, positions, {
      answer: (type, chunk, start, end) => this.#answer(running, type, chunk, start, end),
      ended: () => this.#finish(running),
      sending: (type) => {
        if (type === Frontend.SYNC) this.#wantPosition(running);
      },
    });
    const running: Running = {
      gateway,
      link,
      exchange,
      expected,
      isAnswered: false,
      isPlaced: false,
      position: undefined,
    };
    this.#running = running;
    this.#world.register(link);
    link.send(bytesOf(expected));
    if (random.chance(ABANDON_SHARE)) {
      clock.schedule(random.next() * 5, () => {
        if (this.#running === running) this.#finish(running);
      });
    }
  }

  #positionsOf(gateway: SimGateway, tokens: readonly string[]): readonly Position[] {
    if (tokens.length === 0) return [];
    const reading = gateway.tokens.read(tokens.join(","), AUDIENCE);
    if (reading.ok) return reading.positions;
    this.#world.findings.report("no bug reported", `a token of ours is ${reading.reason}`);
    return [];
  }

  #wantPosition(running: Running): void {
    running.link.relay.wantPosition((position) => {
      running.isPlaced = true;
      running.position = position;
      if (running.isAnswered) this.#finish(running);
    });
  }

  #answer(running: Running, type: number, chunk: Uint8Array, start: number, end: number): void {
    if (this.#running !== running) return;
    running.exchange.answer(type, chunk, start, end);
    if (!running.exchange.isDone) return;
    running.isAnswered = true;
    if (running.isPlaced) this.#finish(running);
  }

  #finish(running: Running): void {
    if (this.#running !== running) return;
    this.#running = undefined;
    const { exchange, link } = running;
    const { counts, trace } = this.#world;
    if (exchange.hasFailed) counts.errors++;
    if (link.relay.servedBy?.role === "replica") counts.replicaReads++;
    trace.note(
      `${this.name} done ${exchange.status} ${exchange.rows.map(({ stamp }) => stamp).join(" ")} ${exchange.sqlStates.join(" ")}`,
    );
    if (exchange.isDone && !exchange.hasFailed) this.#judge(running);
    link.leave(true);
    this.start();
  }

  #judge({ exchange, expected, gateway, position }: Running): void {
    const { kind, key, known } = expected;
    const stamp = exchange.rows[0]?.stamp ?? 0;
    if (kind === "read") {
      this.#world.checkRead(this.name, key, known, stamp);
      return;
    }
    this.#world.wrote(key, stamp);
    if (position === undefined) return;
    this.#world.remember({ text: gateway.tokens.mint([position], AUDIENCE), key, stamp });
  }
}

function bytesOf({ kind, tag, key }: Expected): Uint8Array {
  return concatBytes([parse(kind === "read" ? "read" : "write", ""), ...run("", tag, key), SYNC]);
}
