// Our login, our own queries and our cancel requests against PostgreSQL itself, with SCRAM and with TLS.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chown, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Secret } from "#auth/secret.ts";
import type { Cluster } from "#gateway/embedded/cluster.ts";
import { sendCancelRequest } from "#pool/backend/cancel-request.ts";
import { openControlConnection } from "#pool/backend/control-connection.ts";
import type { ControlConnection } from "#pool/backend/control-connection.ts";
import { loginToServer } from "#pool/backend/login.ts";
import type { LoggedInServer, LoginOptions } from "#pool/backend/login.ts";
import type { Server, SslMode } from "#pool/routing/server.ts";
import { SystemClock } from "#pool/time/system-clock.ts";
import { BunTransport } from "#pool/transport/bun-transport.ts";
import { encodeQuery } from "#pool/wire/frontend-messages.ts";
import { testCluster } from "#test/support/shared-cluster.ts";
import { makeCertificate } from "#test/unit/pool/transport/certificates.ts";
import { Recorder, rejection } from "#test/unit/pool/transport/recorder.ts";

const clock = new SystemClock();
const transport = new BunTransport(clock);
const authority = makeCertificate({ name: "walgate test authority" });
const foreign = makeCertificate({ name: "walgate foreign authority" });
let cluster: Cluster;

beforeAll(async () => {
  cluster = await testCluster({ replicas: 0 });
});
afterAll(() => cluster.stop());

interface Target {
  readonly mode?: SslMode;
  readonly ca?: string;
  readonly host?: string;
}

function server({ mode = "disable", ca, host = "127.0.0.1" }: Target = {}): Server {
  return {
    name: "primary",
    address: { host, port: cluster.primary.port },
    weight: 1,
    tls: { mode, ca },
    role: "unknown",
    epoch: 0,
    leased: 0,
  };
}

function options(target: Target = {}, changes: Partial<LoginOptions> = {}): LoginOptions {
  return {
    transport,
    clock,
    server: server(target),
    dbname: cluster.database,
    user: "app",
    password: new Secret(cluster.passwords.app),
    parameters: { application_name: "walgate test" },
    deadline: clock.now() + 10_000,
    ...changes,
  };
}

function open(target: Target = {}): Promise<ControlConnection> {
  return openControlConnection(options(target));
}

const soon = (): number => clock.now() + 10_000;

/** Whether the session is encrypted, as PostgreSQL sees it. */
const ENCRYPTED = "select ssl::text from pg_stat_ssl where pid = pg_backend_pid()";

test("a SCRAM login ends ready for queries, with a key and the server's parameters", async () => {
  const login = await loginToServer(options());
  const recorder = Recorder.on(login.socket);
  login.socket.resume();
  login.socket.write(
    encodeQuery("select current_user || ' as ' || current_setting('application_name')"),
  );
  await recorder.until(() => recorder.text.includes("SELECT 1"));
  login.socket.destroy();

  expect(recorder.text).toContain("app as walgate test");
  expect(login.processId).toBeGreaterThan(0);
  expect(login.secretKey.length).toBe(4);
  expect(login.parameters.get("in_hot_standby")).toBe("off");
  expect(login.parameters.get("application_name")).toBe("walgate test");
});

test.each([
  ["a wrong password", { password: new Secret("wrong") }, "28P01"],
  ["an unknown role", { user: "nobody" }, "28P01"],
  ["an unknown database", { dbname: "nowhere" }, "3D000"],
  ["an unknown parameter", { parameters: { no_such_setting: "1" } }, "42704"],
] as const)(
  "%s is refused with PostgreSQL's own SQLSTATE and frame",
  async (_what, changes, code) => {
    const error = await rejection(loginToServer(options({}, changes)));
    expect(error).toMatchObject({ code: "ERR_SERVER_LOGIN_REFUSED", sqlState: code });
    expect(error).toHaveProperty("serverError.0", "E".charCodeAt(0));
  },
);

test("own queries return text, survive an error and are shown under the gateway's name", async () => {
  const connection = await open();
  expect(await connection.query("select 1, null, 'ä' union all select 2, 'x', ''", soon())).toEqual(
    [
      ["1", null, "ä"],
      ["2", "x", ""],
    ],
  );
  expect(await rejection(connection.query("select nowhere", soon()))).toMatchObject({
    sqlState: "42703",
  });
  expect(await connection.query("select current_setting('application_name')", soon())).toEqual([
    ["walgate"],
  ]);
  connection.close();
  expect(connection.isOpen).toBe(false);
});

test("an own query past its deadline is 57014 and its connection is gone", async () => {
  const connection = await open();
  const [[pid] = []] = await connection.query("select pg_backend_pid()", soon());
  const closed = new Promise<void>((resolve) => (connection.onClosed = resolve));
  expect(await rejection(connection.query("select pg_sleep(30)", clock.now() + 20))).toMatchObject({
    sqlState: "57014",
  });
  await closed;
  expect(connection.isOpen).toBe(false);
  // The server notices only when it writes.
  await cluster.primary.sql(`select pg_terminate_backend(${Number(pid)})`);
});

test("a backend that is terminated says so to the query that ran", async () => {
  const connection = await open();
  const [[pid] = []] = await connection.query("select pg_backend_pid()", soon());
  const error = rejection(connection.query("select pg_sleep(30)", soon()));
  await cluster.primary.sql(`select pg_terminate_backend(${Number(pid)})`);
  expect(await error).toMatchObject({ sqlState: "57P01" });
});

/** Runs a sleep that is cancelled, then a statement that must not be hit; returns what the client saw. */
async function cancelASleep(login: LoggedInServer, target: Target): Promise<string> {
  const recorder = Recorder.on(login.socket);
  login.socket.resume();
  login.socket.write(encodeQuery("select pg_sleep(30)"));
  await untilActive(login.processId);
  const { processId, secretKey } = login;
  await sendCancelRequest({
    transport,
    clock,
    server: server(target),
    processId,
    secretKey,
    deadline: soon(),
  });
  await recorder.until(() => recorder.text.includes("57014"));
  const before = recorder.text.length;
  login.socket.write(encodeQuery("select 'still ' || 'here' from pg_sleep(0.05)"));
  await recorder.until(() => recorder.text.slice(before).includes("SELECT 1"));
  login.socket.end();
  await recorder.closed;
  return recorder.text.slice(before);
}

async function untilActive(pid: number): Promise<void> {
  const text = `select 1 as found from pg_stat_activity where pid = ${pid} and wait_event = 'PgSleep'`;
  const deadline = clock.now() + 5000;
  while ((await cluster.primary.sql(text)).length === 0) {
    if (clock.now() > deadline) throw new Error("the statement never ran");
  }
}

test("a cancel request ends the running statement and never the next one", async () => {
  expect(await cancelASleep(await loginToServer(options()), {})).toContain("still here");
});

test("require is refused by a server without TLS, and prefer goes on without it", async () => {
  expect(await rejection(open({ mode: "require" }))).toMatchObject({
    code: "ERR_CONNECT_FAILED",
    sqlState: "08001",
  });
  const connection = await open({ mode: "prefer" });
  expect(await connection.query(ENCRYPTED, soon())).toEqual([["false"]]);
  connection.close();
});

async function switchTlsOn(): Promise<void> {
  const folder = join(cluster.home, "data", "primary");
  const own = makeCertificate({ name: "db", hosts: ["localhost"], issuer: authority });
  const owner = await stat(folder);
  for (const [name, text] of [
    ["server.crt", own.cert],
    ["server.key", own.key],
  ] as const) {
    const path = join(folder, name);
    await writeFile(path, text, { mode: 0o600 });
    if (owner.uid !== process.getuid?.()) await chown(path, owner.uid, owner.gid);
  }
  await cluster.primary.sql("alter system set ssl = on");
  await cluster.primary.sql("select pg_reload_conf()");
  const deadline = clock.now() + 5000;
  for (;;) {
    const connection = await open({ mode: "prefer" });
    const [[isEncrypted] = []] = await connection.query(ENCRYPTED, soon());
    connection.close();
    if (isEncrypted === "true") return;
    if (clock.now() > deadline) throw new Error("the server never switched TLS on");
  }
}

test("each mode verifies what it promises, and SCRAM binds to the certificate", async () => {
  await switchTlsOn();
  const outcome = async (target: Target): Promise<string> => {
    try {
      const connection = await open(target);
      const [[isEncrypted] = []] = await connection.query(ENCRYPTED, soon());
      connection.close();
      return String(isEncrypted);
    } catch (error) {
      return error instanceof Error ? error.message : "?";
    }
  };
  const REFUSED = "the server's certificate was refused";
  const { cert: ca } = authority;

  expect({
    disable: await outcome({ mode: "disable" }),
    prefer: await outcome({ mode: "prefer" }),
    require: await outcome({ mode: "require", ca: foreign.cert }),
    verifyCa: await outcome({ mode: "verify-ca", ca }),
    verifyCaForeign: await outcome({ mode: "verify-ca", ca: foreign.cert, host: "localhost" }),
    verifyFull: await outcome({ mode: "verify-full", ca, host: "localhost" }),
    verifyFullWrongHost: await outcome({ mode: "verify-full", ca }),
    verifyFullForeign: await outcome({ mode: "verify-full", ca: foreign.cert, host: "localhost" }),
  }).toEqual({
    disable: "false",
    prefer: "true",
    require: "true",
    verifyCa: "true",
    verifyCaForeign: `${REFUSED}: UNABLE_TO_VERIFY_LEAF_SIGNATURE`,
    verifyFull: "true",
    verifyFullWrongHost: `${REFUSED}: ERR_TLS_CERT_ALTNAME_INVALID`,
    verifyFullForeign: `${REFUSED}: UNABLE_TO_VERIFY_LEAF_SIGNATURE`,
  });

  const target = { mode: "require" } as const;
  expect(await cancelASleep(await loginToServer(options(target)), target)).toContain("still here");
});

/** Somebody between us and the server, with a certificate of his own. */
class InterceptedTransport extends BunTransport {
  override peerCertificate(): Uint8Array {
    return foreign.der;
  }
}

test("SCRAM over TLS fails when the server's certificate is not the one that we saw", async () => {
  const target = { mode: "require" } as const;
  const changes = { transport: new InterceptedTransport(clock) };
  expect(await rejection(loginToServer(options(target, changes)))).toMatchObject({
    code: "ERR_SERVER_LOGIN_REFUSED",
    sqlState: "28000",
  });
});
