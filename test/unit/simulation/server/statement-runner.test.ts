// What statements do in a simulated server: locks, transactions, and the state that a session would hand to its next client.
import { describe, expect, test } from "bun:test";
import { client } from "#test/support/wire-frames.ts";
import { sql } from "../../../simulation/server/statements.ts";
import { ServerBench, stampOf } from "./server-bench.ts";

const KEY = 3;
/** PostgreSQL's deadlock_timeout. */
const DEADLOCK_MS = 1_000;

describe("a transaction", () => {
  test("sees its own writes, and nobody else does before the commit", () => {
    const bench = new ServerBench();
    const [writer, reader] = [bench.login(), bench.login()];
    writer.ask(client.query("BEGIN"));
    const stamp = bench.write(writer, "1.1", KEY);

    const before = [bench.read(writer, "1.2", KEY), bench.read(reader, "2.1", KEY)];
    writer.ask(client.query("COMMIT"));

    expect(before).toEqual([stamp, 0]);
    expect(bench.read(reader, "2.2", KEY)).toBe(stamp);
  });

  test("sees with each statement what others have committed by then", () => {
    const bench = new ServerBench();
    const [reader, writer] = [bench.login(), bench.login()];
    reader.ask(client.query("BEGIN"));
    const before = bench.read(reader, "1.1", KEY);
    const stamp = bench.write(writer, "2.1", KEY);

    expect([before, bench.read(reader, "1.2", KEY)]).toEqual([0, stamp]);
  });

  test.each([
    ["that is rolled back", "ROLLBACK", "C ROLLBACK"],
    ["that has failed and is committed", "COMMIT", "C ROLLBACK"],
  ])("%s leaves nothing", (what, end, tag) => {
    const bench = new ServerBench();
    const session = bench.login();
    session.ask(client.query("BEGIN"));
    bench.write(session, "1.1", KEY);
    if (what.includes("failed")) session.ask(client.query(sql.division));

    const replies = session.ask(client.query(end));

    expect(replies).toEqual([tag, "Z I"]);
    expect(bench.read(session, "1.2", KEY)).toBe(0);
  });

  test("of a pipeline ends with its Sync, and an error in it undoes all of it", () => {
    const bench = new ServerBench();
    const session = bench.login();
    const write = [
      client.parse("", sql.parameterWrite),
      client.bind("", "", ["1.1", String(KEY)]),
      client.execute(""),
    ];

    session.ask(...write, client.bind("", "nobody"), client.sync());
    const undone = bench.read(session, "1.2", KEY);
    session.ask(...write, client.sync());

    expect([undone, bench.read(session, "1.3", KEY) > 0]).toEqual([0, true]);
  });
});

test("a write is refused in a READ ONLY block, and done in the next one", () => {
  const bench = new ServerBench();
  const session = bench.login();
  session.ask(client.query("BEGIN READ ONLY"));
  const read = session.ask(client.query(sql.read("1.1", KEY))).at(-2);
  const refused = session.ask(client.query(sql.write("1.2", KEY))).slice(-2);
  session.ask(client.query("ROLLBACK"));
  session.ask(client.query("BEGIN"));

  const refusal = "E 25006 cannot execute UPDATE in a read-only transaction";
  expect([read, refused]).toEqual(["C SELECT 1", [refusal, "Z E"]]);
  expect(bench.write(session, "1.3", KEY)).toBeGreaterThan(0);
});

describe("a setting", () => {
  test.each([
    ["ROLLBACK", "D before"],
    ["COMMIT", "D after"],
  ])("changed in a block is after its %s what it must be", (end, expected) => {
    const session = new ServerBench().login();
    for (const text of [sql.setName("before"), "BEGIN", sql.setName("x"), sql.setName("after")]) {
      session.ask(client.query(text));
    }
    session.ask(client.query(end));

    expect(session.ask(client.query(sql.showName)).at(1)).toBe(expected);
  });

  test("is reported before ReadyForQuery when it has changed", () => {
    const session = new ServerBench().login();
    const texts = [sql.setName("x"), sql.setName("x"), "BEGIN", "RESET ALL", "ROLLBACK"];

    const replies = texts.map((text) => session.ask(client.query(text)));

    expect(replies).toEqual([
      ["C SET", "S application_name=x", "Z I"],
      ["C SET", "Z I"],
      ["C BEGIN", "Z T"],
      ["C RESET", "S application_name=", "Z T"],
      ["C ROLLBACK", "S application_name=x", "Z I"],
    ]);
  });
});

test("DISCARD ALL is refused in a block, and behind another statement of its pipeline", () => {
  const session = new ServerBench().login();
  session.ask(client.parse("show", sql.showName), client.parse("s", "DISCARD ALL"), client.sync());
  const execute = (name: string): Uint8Array[] => [client.bind("", name), client.execute("")];

  const pipeline = session.ask(...execute("show"), ...execute("s"), client.sync());
  session.ask(client.query("BEGIN"));
  const block = session.ask(client.query("DISCARD ALL"));
  session.ask(client.query("ROLLBACK"));
  const alone = session.ask(...execute("s"), client.sync());

  const refusal = "E 25001 DISCARD ALL cannot run inside a transaction block";
  expect(pipeline.slice(-2)).toEqual([refusal, "Z I"]);
  expect(block).toEqual([refusal, "Z E"]);
  expect(alone).toEqual(["2", "C DISCARD ALL", "Z I"]);
});

describe("a row lock", () => {
  test("makes the second writer wait for the end of the first, and go on from it", () => {
    const bench = new ServerBench();
    const [first, second] = [bench.login(), bench.login()];
    first.ask(client.query("BEGIN"));
    const stamp = bench.write(first, "1.1", KEY);
    second.begin(client.query(sql.write("2.1", KEY)));
    bench.pass(300);
    const wasAnswered = second.isAnswered;
    first.ask(client.query("COMMIT"));

    expect([wasAnswered, stampOf(second.finish()) > stamp]).toEqual([false, true]);
  });

  test.each(["crash of its holder's connection", "Terminate"])("ends with a %s", (how) => {
    const bench = new ServerBench();
    const [first, second] = [bench.login(), bench.login()];
    first.ask(client.query("BEGIN"));
    bench.write(first, "1.1", KEY);
    second.begin(client.query(sql.write("2.1", KEY)));
    bench.pass(50);
    if (how === "Terminate") first.send(client.terminate());
    else first.reset();

    expect(stampOf(second.finish())).toBeGreaterThan(0);
  });

  test("goes to one of those that wait, and then to the next", () => {
    const bench = new ServerBench();
    const [first, second, third] = [bench.login(), bench.login(), bench.login()];
    first.ask(client.query("BEGIN"));
    bench.write(first, "1.1", KEY);
    second.begin(client.query(sql.write("2.1", KEY)));
    third.begin(client.query(sql.write("3.1", KEY)));
    bench.pass(50);
    first.ask(client.query("COMMIT"));

    const stamps = [second, third].map((session) => stampOf(session.finish()));

    expect(new Set(stamps).size).toBe(2);
    expect(bench.read(first, "1.2", KEY)).toBe(Math.max(...stamps));
  });

  test("that is never given up ends the wait as a deadlock", () => {
    const bench = new ServerBench();
    const [first, second] = [bench.login(), bench.login()];
    first.ask(client.query("BEGIN"));
    bench.write(first, "1.1", KEY);
    second.begin(client.query(sql.write("2.1", KEY)));
    bench.pass(DEADLOCK_MS - 10);
    const wasAnswered = second.isAnswered;

    expect([wasAnswered, second.finish().at(-2)]).toEqual([false, "E 40P01 deadlock detected"]);
  });
});

describe("an advisory lock", () => {
  const lock = (tag: string): Uint8Array => client.query(sql.lock(tag, 2));

  test("outlives its transaction and is taken again by its own session", () => {
    const bench = new ServerBench();
    const [first, second] = [bench.login(), bench.login()];
    first.ask(client.query("BEGIN"));
    first.ask(lock("1.1"));
    first.ask(client.query("ROLLBACK"));
    const again = first.ask(lock("1.2")).at(-2);
    second.begin(lock("2.1"));
    bench.pass(300);

    expect([again, second.isAnswered]).toEqual(["C SELECT 1", false]);
  });

  test("ends with DISCARD ALL", () => {
    const bench = new ServerBench();
    const [first, second] = [bench.login(), bench.login()];
    first.ask(lock("1.1"));
    second.begin(lock("2.1"));
    bench.pass(50);
    first.ask(client.query("DISCARD ALL"));

    expect(second.finish().at(-2)).toBe("C SELECT 1");
  });

  test("of one server is not known to another", () => {
    const bench = new ServerBench();
    const [first, second] = [bench.login(0), bench.login(1)];
    first.ask(lock("1.1"));

    expect(second.ask(lock("2.1")).at(-2)).toBe("C SELECT 1");
  });
});

describe("what a statement finds in its session", () => {
  test("is told with each: name, lock, block, and whose they are", () => {
    const bench = new ServerBench();
    const session = bench.login(0, { application_name: "start" });
    const texts = [
      sql.read("1.1", KEY),
      sql.setName("changed"),
      sql.lock("1.2", 2),
      "BEGIN",
      sql.read("1.3", KEY),
      sql.read("2.1", KEY),
      "ROLLBACK",
      "DISCARD ALL",
      sql.read("2.2", KEY),
    ];
    for (const text of texts) session.ask(client.query(text));

    const changed = { applicationName: "changed", lockOwner: 1 };
    const untouched = { applicationName: "start", lockOwner: undefined, blockOwner: undefined };
    expect(bench.observed).toEqual([
      { client: 1, ...untouched },
      { client: 1, applicationName: "changed", lockOwner: undefined, blockOwner: undefined },
      { client: 1, ...changed, blockOwner: undefined },
      { client: 2, ...changed, blockOwner: 1 },
      { client: 2, ...untouched },
    ]);
  });

  test("is without a name of another after RESET ALL, and with its lock", () => {
    const bench = new ServerBench();
    const session = bench.login();
    const texts = [sql.setName("x"), sql.lock("1.1", 2), "RESET ALL", sql.read("2.1", KEY)];
    for (const text of texts) session.ask(client.query(text));

    expect(bench.observed.at(-1)).toEqual({
      client: 2,
      applicationName: "",
      lockOwner: 1,
      blockOwner: undefined,
    });
  });
});

test("a key out of range is refused", () => {
  const session = new ServerBench().login();

  expect(session.ask(client.query(sql.read("1.1", 48))).at(-2)).toStartWith("E 22P02");
  expect(session.ask(client.query(sql.read("1.1", 47))).at(-2)).toBe("C SELECT 1");
});
