// psql as it comes, through the gateway: statements, COPY, cancel, errors, TLS, large results.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { pollUntil } from "#gateway/embedded/poll-until.ts";
import { type CommandResult, hasCommand, runCommand, startCommand } from "#test/support/command.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";

const isMissing = !hasCommand("psql");
const unlessMissing = isMissing ? " (skipped: psql is not installed)" : "";

let cluster: Cluster;
let gateway: TestGateway;
let folder: string;

beforeAll(async () => {
  if (isMissing) return;
  cluster = await testCluster({ replicas: 1 });
  folder = await mkdtemp(join(tmpdir(), "walgate-psql-"));
  gateway = await testGateway(cluster, {
    tls: true,
    sections: { "profiles.server": "default_pool_size = 2" },
  });
});
afterAll(async () => {
  await gateway?.stop();
  await cluster?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** Unaligned, tuples only, without the user's psqlrc. */
function words(url = gateway.url(), ...more: readonly string[]): string[] {
  return ["psql", "-X", "-A", "-t", "-q", url, ...more];
}

function psql(script: string, url?: string): Promise<CommandResult> {
  return runCommand(words(url), { stdin: script });
}

describe.skipIf(isMissing)(`psql${unlessMissing}`, () => {
  test("runs statements, strings of several, and transactions as without a gateway", async () => {
    const script = `
      create table people (id int primary key, name text);
      insert into people values (1, 'Ann'), (2, 'Bob') returning id;
      select 1 \\; select 2 \\; select 3;
      begin; delete from people; select count(*) from people; rollback;
      select count(*) from people;
      \\d people
      \\echo :ROW_COUNT
      select version() ~ 'PostgreSQL';
      drop table people;`;

    const ours = await psql(script);
    const direct = await psql(script, cluster.primary.url("app"));

    expect(ours).toEqual(direct);
    expect(ours.stderr).toBe("");
  });

  test("shows errors with PostgreSQL's SQLSTATE, position, detail and hint, and goes on", async () => {
    const script = `
      \\set VERBOSITY verbose
      select * frm x;
      select nothing;
      select 1/0;
      begin; select 1/0; select 2; rollback;
      do $$ begin raise notice 'seen'; raise exception 'no' using detail = 'd', hint = 'h'; end $$;
      select 'still here';`;

    const ours = await psql(script);
    const direct = await psql(script, cluster.primary.url("app"));

    expect(ours).toEqual(direct);
    expect(ours.stdout).toContain("still here");
  });

  test("copies in and out with \\copy, errors inside the copy included", async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => `${i}\tname ${i}`).join("\n");
    await writeFile(join(folder, "rows.tsv"), `${rows}\n`);
    await writeFile(join(folder, "bad.tsv"), "1\tx\nnot a number\ty\n");

    const ours = await psql(`
      create table copied (id int, name text);
      \\copy copied from '${folder}/rows.tsv'
      \\copy copied from '${folder}/bad.tsv'
      select count(*), sum(id) from copied;
      \\copy (select * from copied order by id) to '${folder}/out.tsv'
      \\copy (select 1/0) to '${folder}/none.tsv'
      select 'after';
      drop table copied;`);

    expect(ours.stdout).toBe("20000|199990000\nafter\n");
    expect(ours.stderr).toContain("invalid input syntax for type integer");
    expect(ours.stderr).toContain("division by zero");
    expect(await Bun.file(join(folder, "out.tsv")).text()).toBe(`${rows}\n`);
  });

  test.each([
    ["alone, on a replica", "select pg_sleep(60)", "replica1"],
    ["inside a transaction, on the primary", "begin; select pg_sleep(60)", "primary"],
  ])("an interrupt cancels a statement that runs %s", async (_, statement, name) => {
    const interrupted = async (url: string, server: string): Promise<CommandResult> => {
      const running = startCommand(words(url, "-c", "select 'start'", "-c", statement));
      await pollUntil(() => isRunning(server, statement), 4_000, "the sleep runs");
      running.interrupt();
      return running.result;
    };

    const ours = await interrupted(gateway.url(), name);
    const isStillRunning = await isRunning(name, statement);
    const direct = await interrupted(cluster.primary.url("app"), "primary");

    expect(ours).toEqual(direct);
    expect(ours.stderr).toStartWith("Cancel request sent");
    expect(isStillRunning).toBe(false);
  });

  test("asks for TLS and gets it, with SCRAM or a JWT inside", async () => {
    const { port } = gateway.postgres;
    const password = cluster.passwords.app;
    const base = `host=127.0.0.1 port=${port} dbname=app sslmode=require`;

    const scram = await psql("\\conninfo", `${base} user=app password=${password}`);
    const jwt = await psql(
      "select current_user;",
      `${base} user=anyone password=${await gateway.token()}`,
    );

    expect(scram.stdout).toContain("SSL connection");
    expect(jwt).toEqual({ stdout: "app\n", stderr: "", exitCode: 0 });
  });

  test("a result of 200 MB and a copy of 100 MB pass while the gateway's memory stays flat", async () => {
    let highest = 0;
    // What is live: how much garbage the runtime lets lie is its own choice.
    const live = (): number => {
      Bun.gc(true);
      return process.memoryUsage.rss();
    };
    const before = live();
    const sampler = setInterval(() => {
      highest = Math.max(highest, live());
    }, 200);
    const down = `psql -X -A -t -q '${gateway.url()}' -c "copy (select repeat('x', 999) from generate_series(1, 200000)) to stdout" | wc -c`;
    const up = `yes "$(printf 'x%.0s' $(seq 1 999))" | head -n 100000 | psql -X -q '${gateway.url()}' -c "create temp table t (a text)" -c "copy t from stdin" -c "select sum(length(a)) from t" -A -t`;

    const downloaded = await runCommand(["sh", "-c", down]);
    const uploaded = await runCommand(["sh", "-c", up]);
    clearInterval(sampler);

    expect({ downloaded, uploaded }).toEqual({
      downloaded: { stdout: "200000000\n", stderr: "", exitCode: 0 },
      uploaded: { stdout: "99900000\n", stderr: "", exitCode: 0 },
    });
    expect((highest - before) / 1024 ** 2).toBeLessThan(64);
  });
});

async function isRunning(server: string, statement: string): Promise<boolean> {
  const node = [cluster.primary, ...cluster.replicas].find(({ name }) => name === server);
  const rows = await node?.sql(
    `select pid from pg_stat_activity where state = 'active' and query = '${statement}'`,
  );
  return rows?.length === 1;
}
