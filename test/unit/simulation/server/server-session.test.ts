// What a simulated server answers to messages: PostgreSQL's rules for login, pipelines, errors, waits and cancelling.
import { describe, expect, test } from "bun:test";
import { client } from "#test/support/wire-frames.ts";
import { sql } from "../../../simulation/server/statements.ts";
import { ServerBench } from "./server-bench.ts";

const RUN = [client.bind("", "", ["1.1", "3"]), client.describePortal(""), client.execute("")];

describe("a login", () => {
  test("needs no password and ends with the cancel key and ReadyForQuery", () => {
    const session = new ServerBench().login();

    expect(session.greeting.at(0)).toBe("R");
    expect(session.greeting.slice(-2)).toEqual(["K", "Z I"]);
    expect(session.processId).toBeGreaterThan(0);
  });

  test("tells the settings that PostgreSQL 18 reports", () => {
    const { greeting } = new ServerBench().login(0, { application_name: "batch" });

    const names = greeting.flatMap((line) => /^S ([^=]+)=/.exec(line)?.[1] ?? []);

    expect(names).toEqual([
      "application_name",
      "client_encoding",
      "DateStyle",
      "default_transaction_read_only",
      "in_hot_standby",
      "integer_datetimes",
      "IntervalStyle",
      "is_superuser",
      "scram_iterations",
      "search_path",
      "server_encoding",
      "server_version",
      "session_authorization",
      "standard_conforming_strings",
      "TimeZone",
    ]);
    expect(greeting).toContain("S application_name=batch");
    expect(greeting).toContain("S server_version=18.1");
  });

  test("may begin with a request for TLS, which is refused", () => {
    const bench = new ServerBench();
    const session = bench.open();

    session.send(new Uint8Array([0, 0, 0, 8, 4, 210, 22, 47]));
    bench.pass(500);

    expect(session.takeBytes()).toEqual(new Uint8Array(["N".charCodeAt(0)]));
  });

  test("is refused by a server that is down", () => {
    const bench = new ServerBench();
    bench.cluster.crash(bench.server(0));

    expect(() => bench.login()).toThrow("connection refused");
  });

  test("sets application_name for the session", () => {
    const session = new ServerBench().login(0, { application_name: "batch" });

    expect(session.ask(client.query(sql.showName))).toEqual(["T", "D batch", "C SHOW", "Z I"]);
  });
});

describe("a simple Query", () => {
  test.each([
    ["a read", sql.read("1.1", 3), ["T", "D 1.1,0", "C SELECT 1", "Z I"]],
    ["a write", sql.write("1.1", 3), ["T", "D 1.1,1", "C UPDATE 1", "Z I"]],
    ["an empty text", " ", ["I", "Z I"]],
    ["what it does not know", "SELEC 1", ["E 42601 syntax error", "Z I"]],
  ])("answers %s", (_what, text, expected) => {
    expect(new ServerBench().login().ask(client.query(text))).toEqual(expected);
  });

  test("ends at the first statement that fails", () => {
    const session = new ServerBench().login();

    const replies = session.ask(client.query("SELECT 1/0; SHOW application_name"));

    expect(replies.slice(-2)).toEqual(["E 22012 division by zero", "Z I"]);
  });
});

describe("the extended protocol", () => {
  test("answers each message of an unnamed statement in order", () => {
    const session = new ServerBench().login();

    const replies = session.ask(client.parse("", sql.parameterRead), ...RUN, client.sync());

    expect(replies).toEqual(["1", "2", "T", "D 1.1,0", "C SELECT 1", "Z I"]);
  });

  test("skips what stands behind an error up to the Sync, and not beyond it", () => {
    const session = new ServerBench().login();

    const replies = session.ask(
      client.bind("", "nobody"),
      client.execute(""),
      client.sync(),
      client.parse("", sql.parameterRead),
      ...RUN,
      client.sync(),
    );

    expect(replies.map((line) => line.slice(0, 7))).toEqual([
      "E 26000",
      "Z I",
      "1",
      "2",
      "T",
      "D 1.1,0",
      "C SELEC",
      "Z I",
    ]);
  });

  test("keeps a named statement until it is closed, and refuses its name meanwhile", () => {
    const session = new ServerBench().login();
    const parse = client.parse("s", sql.parameterRead);

    session.ask(parse, client.sync());
    const again = session.ask(parse, client.sync());
    const closed = session.ask(client.closeStatement("s"), parse, client.sync());

    expect(again).toEqual(['E 42P05 prepared statement "s" already exists', "Z I"]);
    expect(closed).toEqual(["3", "1", "Z I"]);
  });

  test("ends the unnamed statement with a simple Query", () => {
    const session = new ServerBench().login();
    session.ask(client.parse("", sql.parameterRead), client.sync());
    session.ask(client.query(sql.showName));

    const [reply = ""] = session.ask(client.bind("", "", ["1.1", "3"]), client.sync());

    expect(reply.slice(0, 7)).toBe("E 26000");
  });

  test("forgets statements and portals with DISCARD ALL", () => {
    const session = new ServerBench().login();
    session.ask(client.parse("s", sql.parameterRead), client.sync());
    session.ask(client.query("DISCARD ALL"));

    const [reply = ""] = session.ask(client.bind("", "s", ["1.1", "3"]), client.sync());

    expect(reply.slice(0, 7)).toBe("E 26000");
  });

  test("ends an unnamed statement with the next Parse of one, also when that fails", () => {
    const session = new ServerBench().login();
    session.ask(client.parse("", sql.parameterRead), client.sync());
    session.ask(client.parse("", "SELEC 1"), client.sync());

    const replies = session.ask(client.bind("", "", ["1.1", "3"]), client.sync());

    expect(replies).toEqual(["E 26000 unnamed prepared statement does not exist", "Z I"]);
  });

  test("ends portals with their transaction, and refuses the name of one that is open", () => {
    const session = new ServerBench().login();
    session.ask(client.parse("s", "SHOW application_name"), client.sync());
    const bind = client.bind("p", "s");

    const open = session.ask(bind, bind, client.sync());
    const gone = session.ask(client.execute("p"), client.sync());
    session.ask(client.query("BEGIN"), bind, client.sync());
    const kept = session.ask(client.execute("p"), client.sync());

    expect(open).toEqual(["2", 'E 42P03 cursor "p" already exists', "Z I"]);
    expect(gone).toEqual(['E 34000 portal "p" does not exist', "Z I"]);
    expect(kept).toEqual(["D ", "C SHOW", "Z T"]);
  });

  test("sends what it has at a Flush", () => {
    const bench = new ServerBench();
    const session = bench.login();

    session.send(client.parse("", sql.parameterRead), client.flush());
    bench.pass(500);

    expect(session.take()).toEqual(["1"]);
  });
});

describe("a transaction block", () => {
  test("is told by each ReadyForQuery", () => {
    const session = new ServerBench().login();

    const texts = ["BEGIN", sql.division, "COMMIT", "BEGIN", "COMMIT"];
    const replies = texts.map((text) => session.ask(client.query(text)).slice(-2).join(" "));

    expect(replies).toEqual([
      "C BEGIN Z T",
      "E 22012 division by zero Z E",
      "C ROLLBACK Z I",
      "C BEGIN Z T",
      "C COMMIT Z I",
    ]);
  });

  test("that has failed refuses statements until it ends", () => {
    const session = new ServerBench().login();
    session.ask(client.query("BEGIN"));
    session.ask(client.query(sql.division));

    const simple = session.ask(client.query(sql.read("1.1", 3)));
    const extended = session.ask(client.parse("", sql.parameterRead), client.sync());

    const refusal = "E 25P02 current transaction is aborted";
    expect(simple).toEqual([refusal, "Z E"]);
    expect(extended).toEqual([refusal, "Z E"]);
  });

  test("that has failed can be ended by the extended protocol", () => {
    const session = new ServerBench().login();
    session.ask(client.query("BEGIN"));
    session.ask(client.query(sql.division));

    expect(session.ask(client.unnamed("ROLLBACK"))).toEqual(["1", "2", "n", "C ROLLBACK", "Z I"]);
  });
});

describe("bytes", () => {
  test("cut anywhere give the answers that whole messages give", () => {
    const bytes = client.unnamed(sql.read("1.1", 3));
    const whole = new ServerBench().login().ask(bytes);

    const bench = new ServerBench();
    const session = bench.login();
    for (const byte of bytes) session.send(new Uint8Array([byte]));
    bench.until("the answer", () => session.readyCount === 1);

    expect(session.take()).toEqual(whole);
  });

  test("behind a Terminate are not read, and the connection is closed in order", () => {
    const bench = new ServerBench();
    const session = bench.login();

    session.send(client.terminate(), client.query(sql.write("1.1", 3)));
    bench.until("the end", () => session.ending !== undefined);

    expect([session.ending, session.take(), bench.server(0).stampOf(3)]).toEqual([
      "orderly",
      [],
      0,
    ]);
  });
});

describe("a cancel request", () => {
  test("ends a statement that waits, and is confirmed by the end of its connection", () => {
    const bench = new ServerBench();
    const [holder, waiter] = [bench.login(), bench.login()];
    holder.ask(client.query("BEGIN"));
    holder.ask(client.query(sql.write("1.1", 3)));
    waiter.begin(client.query(sql.write("2.1", 3)));
    bench.pass(250);

    const request = waiter.cancel();
    const replies = waiter.finish();
    bench.until("the end", () => request.ending !== undefined);

    expect(replies.at(-2)).toBe("E 57014 canceling statement due to user request");
    expect(request.ending).toBe("orderly");
  });

  test("with another secret ends nothing", () => {
    const bench = new ServerBench();
    const [holder, waiter] = [bench.login(), bench.login()];
    holder.ask(client.query("BEGIN"));
    holder.ask(client.query(sql.write("1.1", 3)));
    waiter.begin(client.query(sql.write("2.1", 3)));
    bench.pass(50);

    const request = waiter.cancel(waiter.secret ^ 1);
    bench.until("the end", () => request.ending !== undefined);
    holder.ask(client.query("COMMIT"));

    expect(waiter.finish().at(-2)).toBe("C UPDATE 1");
  });

  test("of an idle session does nothing to its next statement", () => {
    const bench = new ServerBench();
    const session = bench.login();

    const request = session.cancel();
    bench.until("the end", () => request.ending !== undefined);

    expect(session.ask(client.query(sql.read("1.1", 3))).at(-2)).toBe("C SELECT 1");
  });
});

describe("a server that hangs", () => {
  test("answers nothing until it goes on", () => {
    const bench = new ServerBench();
    const session = bench.login();
    bench.server(0).hungUntil = bench.clock.now() + 1_000;

    session.begin(client.query(sql.read("1.1", 3)));
    bench.pass(990);
    const meanwhile = session.take();

    expect(meanwhile).toEqual([]);
    expect(session.finish()).toEqual(["T", "D 1.1,0", "C SELECT 1", "Z I"]);
  });
});

test("a text that is not known stands in the trace", () => {
  const bench = new ServerBench();
  const session = bench.login();
  session.ask(client.query("SELECT simple"));
  session.ask(client.parse("", "SELECT extended"), client.sync());

  const lines = bench.trace.lines?.filter((line) => line.includes("does not know")) ?? [];

  expect(lines.map((line) => line.slice(line.indexOf("SELECT")).trim())).toEqual([
    "SELECT simple",
    "SELECT extended",
  ]);
});

describe("a crash", () => {
  test("cuts some answers anywhere before their end, and sends nothing of others", () => {
    const text = sql.big("1.1", 1_000);
    const bench = new ServerBench();
    const session = bench.login();
    session.send(client.query(text));
    bench.until("the answer", () => session.readyCount === 1);
    const size = session.takeBytes().length;

    const sizes = Array.from({ length: 400 }, (_, seed) => cutAnswer(new ServerBench(seed), text));

    const cut = sizes.filter((got) => got > 0 && got < size);
    expect([sizes.includes(0), cut.length > 1, Math.max(...sizes) <= size]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("resets connections and undoes what was not committed", () => {
    const bench = new ServerBench();
    const session = bench.login();
    session.ask(client.query("BEGIN"));
    session.ask(client.query(sql.write("1.1", 3)));

    bench.cluster.crash(bench.server(0));
    bench.until("the end", () => session.ending !== undefined);
    bench.cluster.restart(bench.server(0));

    const next = bench.login();
    expect(session.ending).toBe("reset");
    expect([bench.read(next, "2.1", 3), bench.write(next, "2.2", 3)]).toEqual([0, 2]);
  });
});

/** How many bytes of the answer came, when the server crashed while it worked at it. */
function cutAnswer(bench: ServerBench, text: string): number {
  const session = bench.login();
  session.begin(client.query(text));
  bench.pass(1);
  bench.cluster.crash(bench.server(0));
  bench.until("the end", () => session.ending !== undefined);
  return session.takeBytes().length;
}
