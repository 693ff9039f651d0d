// Credentials over HTTP: tokens, passwords in connection strings, what goes with them, and what an answer gives away.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { type TestGateway, testGateway } from "#test/support/test-gateway.ts";
import { type Answer, connectionString, post } from "./http-client.ts";

let cluster: Cluster;
let gateway: TestGateway;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
  gateway = await testGateway(cluster);
});
afterAll(async () => {
  await gateway.stop();
  await cluster.stop();
});

const WHO = { query: "select current_user, current_setting('application_name')" };

async function ask(headers: Record<string, string>, path = "/sql"): Promise<Answer> {
  const raw = { "Neon-Raw-Text-Output": "true", "Neon-Array-Mode": "true" };
  return post(`${gateway.http}${path}`, WHO, { ...raw, ...headers });
}

const bearer = async (claims = {}, expiresInSeconds = 600): Promise<string> =>
  `Bearer ${await gateway.token(claims, expiresInSeconds)}`;

describe("a token", () => {
  test("leads to the profile that the rules give it", async () => {
    expect((await ask({ Authorization: await bearer() })).body).toMatchObject({
      rows: [["app", ""]],
    });
    const user = await ask({ Authorization: await bearer({ role: "authenticated" }) });
    expect(user.body).toMatchObject({ rows: [["app_user", ""]] });
  });

  test("alone decides: user and password beside it are not looked at, its settings are", async () => {
    const answer = await ask({
      Authorization: await bearer(),
      "Neon-Connection-String": "postgresql://nobody:wrong@h/app?application_name=x",
    });

    expect(answer.body).toMatchObject({ rows: [["app", "x"]] });
  });

  test("gives no access to another database than its profile's", async () => {
    const answer = await ask({
      Authorization: await bearer(),
      "Neon-Connection-String": "postgresql://app@h/other",
    });

    expect(answer).toMatchObject({ status: 400, body: { code: "28000", severity: "FATAL" } });
  });

  test("that is expired, forged, of no rule or no token at all is refused, and not repeated", async () => {
    const good = await bearer();
    const headers = [
      await bearer({}, -120),
      `${good.slice(0, -4)}AAAA`,
      await bearer({ role: "nobody" }),
      "Bearer hunter2",
      "Basic aHVudGVyMg==",
      `${good}, ${good}`,
      "Bearer",
    ];
    for (const Authorization of headers) {
      const answer = await ask({ Authorization });
      const secret = Authorization.split(" ")[1] ?? "nothing";

      expect(answer).toMatchObject({ status: 400, body: { code: "28000", severity: "FATAL" } });
      expect(JSON.stringify(answer.body)).not.toContain(secret.slice(0, 10));
    }
    expect((await ask({ Authorization: headers[0] ?? "" }, "/v1/query")).status).toBe(401);
  });

  test("is the only credential of /v1/query", async () => {
    const answer = await ask({ "Neon-Connection-String": connectionString(cluster) }, "/v1/query");

    expect(answer).toMatchObject({ status: 401, body: { code: "28000" } });
  });
});

describe("a connection string", () => {
  test("logs in with user and password, percent-decoded", async () => {
    const answer = await ask({ "Neon-Connection-String": connectionString(cluster) });

    expect(answer.body).toMatchObject({ rows: [["app", ""]] });
  });

  test("with a wrong password or an unknown user gets PostgreSQL's words for both", async () => {
    for (const user of ["app", "nobody"]) {
      const answer = await ask({ "Neon-Connection-String": `postgresql://${user}:wrong@h/app` });

      expect(answer).toMatchObject({
        status: 400,
        body: {
          code: "28P01",
          severity: "FATAL",
          message: `password authentication failed for user "${user}"`,
        },
      });
    }
  });

  test("of an unknown database gets 3D000", async () => {
    const answer = await ask({ "Neon-Connection-String": "postgresql://app:x@h/nowhere" });

    expect(answer).toMatchObject({
      status: 400,
      body: { code: "3D000", message: 'database "nowhere" does not exist' },
    });
  });

  test("that is missing, broken or incomplete is refused before anything is asked", async () => {
    expect((await ask({})).body).toMatchObject({ code: "28000" });
    const strings = [
      ["mysql://u:p@h/app", "08P01"],
      ["postgresql://:p@h/app", "28000"],
      ["postgresql://app@h/app", "28P01"],
      ["postgresql://app:p@h", "08P01"],
    ] as const;
    for (const [text, code] of strings) {
      expect((await ask({ "Neon-Connection-String": text })).body).toMatchObject({ code });
    }
  });

  test("brings its settings to the session, and one that PostgreSQL refuses is its error", async () => {
    const query = (text: string) =>
      post(
        `${gateway.http}/sql`,
        { query: "select current_setting('statement_timeout'), current_setting('search_path')" },
        { "Neon-Connection-String": connectionString(cluster, text), "Neon-Array-Mode": "true" },
      );

    const set = await query(
      "?statement_timeout=1234&options=-csearch_path%3Dx&sslmode=require&foo=bar",
    );
    const refused = await query("?statement_timeout=soon");
    const next = await query("");

    expect(set.body).toMatchObject({ rows: [["1234ms", "x"]] });
    expect(refused).toMatchObject({ status: 400, body: { code: "22023" } });
    expect(next.body).toMatchObject({ rows: [["0", '"$user", public']] });
  });
});

test("no log line holds a password or a token", async () => {
  const token = await gateway.token();
  await ask({ Authorization: `Bearer ${token}` });
  await ask({ "Neon-Connection-String": "postgresql://app:hunter2@h/app" });

  const log = gateway.log.join("");
  expect(log).not.toContain("hunter2");
  expect(log).not.toContain(token);
  expect(log).not.toContain(cluster.passwords.app);
});
