// The example Worker in real workerd, before a real gateway and replicas that stand still, driven from Bun and from Node.js.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { childPids, commandLine, isAlive } from "#gateway/embedded/process-table.ts";
import { pauseReplay, resumeReplay, setApplyDelay } from "#test/support/replay-control.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { type BundledWorker, bundleForNode, bundleWorker } from "./bundle.ts";
import {
  type Answer,
  type ControlWord,
  runNotesSteps,
  type StepsInput,
  type StepsReport,
} from "./notes-steps.ts";

const NODE_MAJOR_MIN = 20;
/** Well above what the steps allow themselves for their own waits together. */
const PROGRAM_TIMEOUT_MS = 50_000;

/** Replicas hold back commits for so long: longer than any test. */
const APPLY_DELAY_MS = 600_000;

const OWN: Answer = { status: 200, servedBy: "primary", hasNote: true };

const STALE: Answer = { status: 200, servedBy: "a replica", hasNote: false };

const EXPECTED: StepsReport = {
  whilePaused: {
    write: { status: 201, servedBy: "primary", hasNote: true },
    readWithCookie: OWN,
  },
  whileHeldBack: {
    write: { status: 201, servedBy: "primary", hasNote: true },
    cookieAttributes: "Path=/; Max-Age=300; HttpOnly; Secure; SameSite=Lax",
    reads: {
      "its cookie": OWN,
      "its cookie among others": OWN,
      "no cookie": STALE,
      "another cookie": STALE,
      "a forged cookie": OWN,
      "half a cookie": OWN,
      "a cookie that is no token": OWN,
      "a cookie of 5,000 characters": OWN,
    },
  },
  onceReplayed: {
    readWithCookie: { status: 200, servedBy: "a replica", hasNote: true },
    readsWithoutNote: 0,
  },
  withoutGateway: {
    read: { status: 502, body: '{"error":"the database does not answer"}' },
    write: {
      status: 502,
      body: '{"error":"the database does not answer; the note may have been stored all the same"}',
    },
  },
  printed: { isAnError: true, isASecret: false },
};

let cluster: Cluster;
let worker: BundledWorker;

beforeAll(async () => {
  worker = await bundleWorker();
  cluster = await testCluster();
  await cluster.primary.sql(`
    create table notes (id integer generated always as identity primary key, body text not null);
    alter table notes owner to app`);
});
afterAll(() => cluster.stop());

describe("a visitor whose requests meet different instances of the Worker", () => {
  test("reads their own write by its cookie, driven from Bun", async () => {
    await using surroundings = await surround(() => process.pid);

    expect(await runNotesSteps(surroundings.input)).toEqual(EXPECTED);
    expect(await surroundings.workerdsLeft()).toEqual({ seen: 2, left: 0 });
  });

  testWithNode("reads their own write by its cookie, driven from Node.js", async () => {
    const folder = await mkdtemp(join(tmpdir(), "walgate-workers-"));
    try {
      const program = join(folder, "notes-steps.mjs");
      await Bun.write(
        program,
        await bundleForNode(join(import.meta.dir, "notes-steps-program.ts")),
      );
      let pid = 0;
      await using surroundings = await surround(() => pid);
      const node = Bun.spawn(["node", program], {
        cwd: folder,
        env: { PATH: process.env["PATH"] ?? "", HOME: folder },
        stdin: new TextEncoder().encode(JSON.stringify(surroundings.input)),
        stdout: "pipe",
        stderr: "pipe",
        timeout: PROGRAM_TIMEOUT_MS,
      });
      pid = node.pid;
      const [output, errors, code] = await Promise.all([
        new Response(node.stdout).text(),
        new Response(node.stderr).text(),
        node.exited,
      ]);

      expect({ errors, code }).toEqual({ errors: "", code: 0 });
      expect(JSON.parse(output)).toEqual(EXPECTED);
      expect(await surroundings.workerdsLeft()).toEqual({ seen: 2, left: 0 });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

/** A test that is skipped, and says why, where there is no Node.js that Miniflare runs on. */
function testWithNode(title: string, body: () => Promise<void>): void {
  const why = whyNotNode();
  if (why !== undefined) console.warn(`skipped: ${title}: ${why}`);
  test.skipIf(why !== undefined)(title, body);
}

function whyNotNode(): string | undefined {
  if (Bun.which("node") === null) return "node is not on PATH";
  const version = Bun.spawnSync(["node", "--version"]).stdout.toString().trim();
  const major = Number(/^v(\d+)\./.exec(version)?.[1] ?? 0);
  return major < NODE_MAJOR_MIN
    ? `node is ${version || "of no version"}, older than 20`
    : undefined;
}

interface Surroundings extends AsyncDisposable {
  readonly input: StepsInput;
  /** How many workerd processes the steps were seen to have, and how many of them are still there. */
  workerdsLeft(): Promise<{ seen: number; left: number }>;
}

/** A gateway for the Worker, and a server that does to it and to the replicas what the steps ask. */
async function surround(hostPid: () => number): Promise<Surroundings> {
  const gateway = await testGateway(cluster);
  const workerds = new Set<number>();
  const control = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/:word": {
        POST: async ({ params }) => {
          for (const pid of await workerdsOf(hostPid())) workerds.add(pid);
          await obey(params.word as ControlWord, gateway);
          return new Response();
        },
      },
    },
    error: (failure) => new Response(failure.message, { status: 500 }),
  });
  return {
    input: {
      worker: {
        ...worker,
        bindings: { WALGATE_URL: gateway.http, WALGATE_TOKEN: await gateway.token() },
      },
      controlUrl: control.url.href,
    },
    workerdsLeft: async () => {
      const areLeft = await Promise.all([...workerds].map(isAlive));
      return { seen: workerds.size, left: areLeft.filter(Boolean).length };
    },
    [Symbol.asyncDispose]: async () => {
      await control.stop(true);
      // Steps that failed may have left the replicas standing.
      await obey("resume-replay", gateway);
      await obey("release-commits", gateway);
      await gateway.stop();
    },
  };
}

async function obey(word: ControlWord, gateway: TestGateway): Promise<void> {
  switch (word) {
    case "pause-replay":
      await Promise.all(cluster.replicas.map(pauseReplay));
      return;
    case "resume-replay":
      await Promise.all(cluster.replicas.map(resumeReplay));
      return;
    case "hold-commits":
      await Promise.all(cluster.replicas.map((node) => setApplyDelay(node, APPLY_DELAY_MS)));
      return;
    case "release-commits":
      await Promise.all(cluster.replicas.map((node) => setApplyDelay(node, 0)));
      return;
    case "stop-gateway":
      await gateway.stop();
  }
}

async function workerdsOf(hostPid: number): Promise<number[]> {
  const pids = await childPids(hostPid);
  const lines = await Promise.all(pids.map(commandLine));
  return pids.filter((_, index) => lines[index]?.includes("workerd serve") === true);
}
