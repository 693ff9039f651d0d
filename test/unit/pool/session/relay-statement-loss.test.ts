// Prepared statements that are dropped, unnamed, replaced by other clients, or too long to be made again.
import { beforeAll, describe, expect, test } from "bun:test";
import { loadStatementParser } from "#pool/sql/statement-classifier.ts";
import { settled } from "#test/support/fake-backend.ts";
import { client, server } from "#test/support/wire-frames.ts";
import { RelayBench } from "./relay-bench.ts";

beforeAll(loadStatementParser);

const ANSWER = ["2", "D 1", "C SELECT 1", "Z I"];

describe("statements that the server dropped", () => {
  test.each(["discard all", "deallocate all"])("after %s a name is free again", async (text) => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());

    await app.send(client.query(text));
    const missing = await app.send(client.run("s1"));
    const again = await app.send(client.parse("s1", "select 1"), client.run("s1"));

    expect(missing).toEqual(['E 26000 prepared statement "s1" does not exist', "Z I"]);
    expect(again).toEqual(["1", ...ANSWER]);
  });

  test("a pipeline behind DISCARD ALL may use its names again at once", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());

    const answers = await app.send(
      client.query("discard all"),
      client.parse("s1", "select 2"),
      client.run("s1"),
    );

    expect(answers).toEqual(["C DISCARD ALL", "Z I", "1", "2", "D 2", "C SELECT 1", "Z I"]);
  });

  test("what may drop names in a segment hides no unanswered change of them in the one before", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const missing = 'E 26000 prepared statement "s1" does not exist';

    const skipped = await app.send(
      client.bind("", "s1"),
      client.parse("s1", "select 1"),
      client.sync(),
      client.parse("", "discard all"),
      client.bind("", ""),
      client.bind("", "s1"),
      client.sync(),
    );
    expect(skipped).toEqual([missing, "Z I", "1", "2", missing, "Z I"]);

    await app.send(client.parse("s1", "select 1"), client.sync());
    const dropped = await app.send(
      client.query("discard all"),
      client.parse("", "discard all"),
      client.bind("", ""),
      client.bind("", "s1"),
      client.sync(),
    );
    expect(dropped).toEqual(["C DISCARD ALL", "Z I", "1", "2", missing, "Z I"]);
  });

  test("what was parsed behind DISCARD ALL in its own segment stays", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    await app.send(
      client.parse("", "discard all"),
      client.bind("", ""),
      client.execute(""),
      client.parse("s1", "select 1"),
      client.sync(),
    );

    expect(await app.send(client.run("s1"))).toEqual(ANSWER);
  });

  test("what other clients had prepared there is prepared again", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());
    await other.send(client.query("discard all"));
    other.relay.leave(true);
    await settled();

    expect(await app.send(client.run("s1"))).toEqual(ANSWER);
  });

  test("a cached plan whose result type changed costs one error, not one for ever", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());
    bench.backend.hold();
    app.push(client.run("s1"));
    await settled();
    bench.backend.send(
      server.error(
        "0A000",
        "cached plan must not change result type",
        "ERROR",
        "RevalidateCachedQuery",
      ),
      server.ready("I"),
    );
    await settled();
    const failed = app.answers();

    bench.backend.discardHeld();
    const received = bench.backend.received.length;
    const answers = await app.send(client.run("s1"));

    expect(failed).toEqual(["E 0A000 cached plan must not change result type", "Z I"]);
    expect(answers).toEqual(ANSWER);
    expect(bench.backend.received.slice(received)).toEqual([
      "C S wg_1",
      "P wg_1 select 1",
      'B "" wg_1',
      'E ""',
      "S",
    ]);
  });
});

describe("the unnamed statement", () => {
  test("bound in a segment of its own, it is prepared again where another client has been meanwhile", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await app.send(client.parse("", "select 1"), client.sync());
    await other.send(client.unnamed("select 2"));

    expect(await app.send(client.run(""))).toEqual(ANSWER);
  });

  test("where nobody has been it is not prepared again", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("", "select 1"), client.sync());

    expect(await app.send(client.run(""))).toEqual(ANSWER);
    expect(bench.backend.received).toEqual(['P "" select 1', "S", 'B "" ""', 'E ""', "S"]);
  });

  test("a simple Query ends it", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("", "select 1"), client.sync());
    await app.send(client.query("select 2"));

    expect(await app.send(client.run(""))).toEqual([
      "E 26000 unnamed prepared statement does not exist",
      "Z I",
    ]);
  });

  test("one that was skipped is never mistaken for an older one", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const other = bench.connect();
    await other.send(client.unnamed("insert into t values (1)"));

    const answers = await app.send(
      client.bind("", "nothing"),
      client.parse("", "select 1"),
      client.sync(),
      client.run(""),
    );

    expect(answers).toEqual([
      'E 26000 prepared statement "nothing" does not exist',
      "Z I",
      "E 26000 unnamed prepared statement does not exist",
      "Z I",
    ]);
  });
});

describe("untrusted profiles", () => {
  test("nothing of ours is named on the server: statements run as the unnamed one", async () => {
    const bench = new RelayBench({ isTrusted: false });
    const app = bench.connect();

    const first = await app.send(client.parse("s1", "select 1"), client.run("s1"));
    const second = await app.send(client.parse("s2", "select 2"), client.run("s1"));

    expect(first).toEqual(["1", ...ANSWER]);
    expect(second).toEqual(["1", ...ANSWER]);
    expect(bench.backend.model.statementNames).toEqual([""]);
  });

  test("in a later segment of a pipeline the text is sent again, so that a skipped one is never mistaken", async () => {
    const bench = new RelayBench({ isTrusted: false });
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());
    await app.send(client.parse("s2", "select 2"), client.sync());

    const answers = await app.send(
      client.bind("", "nothing"),
      client.bind("", "s1"),
      client.sync(),
      client.run("s1"),
    );

    expect(answers).toEqual([
      'E 26000 prepared statement "nothing" does not exist',
      "Z I",
      ...ANSWER,
    ]);
  });
});

describe("texts too long to keep", () => {
  const LONG = `select 1${" ".repeat(70_000)}`;

  test("a named one gets a name of its own and keeps the session on its server", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const parsed = await app.send(client.parse("big", LONG), client.sync());
    const ran = await app.send(client.describeStatement("big"), client.run("big"));
    const closed = await app.send(client.closeStatement("big"), client.sync());

    expect([parsed, ran, closed]).toEqual([
      ["1", "Z I"],
      ["t", "T", ...ANSWER],
      ["3", "Z I"],
    ]);
    expect(app.relay.pinned).toBe("too_long");
    expect(bench.backend.received[0]).toMatch(/^P wg_own_\d+ select 1 /);
    expect(bench.backend.model.statementNames).toEqual([]);
  });

  test("a second one of the same name gives 42P05, and none of it reaches the server", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("big", LONG), client.sync());
    const received = bench.backend.received.length;

    expect(await app.send(client.parse("big", LONG), client.sync(), client.run("big"))).toEqual([
      'E 42P05 prepared statement "big" already exists',
      "Z I",
      ...ANSWER,
    ]);
    expect(bench.backend.received.slice(received)).toEqual([
      'B "" _walgate_none',
      "S",
      expect.stringMatching(/^B "" wg_own_\d+$/),
      'E ""',
      "S",
    ]);
  });

  test("an unnamed one runs in its own segment, and can't be had again when it has been replaced", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const ran = await app.send(client.parse("", LONG), client.run(""));
    await app.send(client.parse("s1", "select 2"), client.sync());
    const again = await app.send(client.run(""));
    bench.connections[0]?.statements.unnamedDropped();
    const lost = await app.send(client.run(""), client.describeStatement(""), client.sync());

    expect([ran, again, lost]).toEqual([
      ["1", ...ANSWER],
      ANSWER,
      [
        "E 26000 unnamed prepared statement does not exist",
        "Z I",
        "E 26000 unnamed prepared statement does not exist",
        "Z I",
      ],
    ]);
  });

  test("the parameters of a large Bind reach the server unchanged under the name it has there", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    await app.send(client.parse("s1", "select 1"), client.sync());
    const bind = client.bind("", "s1", ["y".repeat(200_000)]);

    const answers = await app.send(bind, client.execute(""), client.sync());

    expect(answers).toEqual(ANSWER);
    expect(bench.leased).toBe(0);
  });

  test("a large Bind to a name that nothing has is dropped whole", async () => {
    const bench = new RelayBench();
    const app = bench.connect();
    const bind = client.bind("", "wg_1", ["y".repeat(200_000)]);

    const answers = await app.send(
      bind,
      client.execute(""),
      client.sync(),
      client.query("select 1"),
    );

    expect(answers).toEqual([
      'E 26000 prepared statement "wg_1" does not exist',
      "Z I",
      "T",
      "D 1",
      "C SELECT 1",
      "Z I",
    ]);
  });

  test("a large Bind in a later segment than its unanswered Parse waits for it", async () => {
    const bench = new RelayBench();
    const app = bench.connect();

    const answers = await app.send(
      client.parse("s1", "select 1"),
      client.sync(),
      client.bind("", "s1", ["y".repeat(200_000)]),
      client.execute(""),
      client.sync(),
    );

    expect(answers).toEqual(["1", "Z I", ...ANSWER]);
  });
});
