// Pipelines as drivers send them, and as none should: each leaves the table as it found it.
import { concatBytes } from "#pool/wire/message-types.ts";
import { client } from "#test/support/wire-frames.ts";

/** Bytes to send, and how many messages of which type are to be awaited before the next step. */
export interface Step {
  readonly bytes: Uint8Array;
  readonly until: string;
  readonly count: number;
}

export interface Script {
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Awaits one ReadyForQuery, or as many as said. */
function step(parts: readonly Uint8Array[], count = 1): Step {
  return { bytes: concatBytes(parts), until: "Z", count };
}

function until(type: string, ...parts: readonly Uint8Array[]): Step {
  return { bytes: concatBytes(parts), until: type, count: 1 };
}

function query(text: string): Step {
  return step([client.query(text)]);
}

function script(name: string, ...steps: readonly Step[]): Script {
  return { name, steps };
}

const { parse, bind, describeStatement, describePortal, execute, closeStatement, closePortal } =
  client;
const { sync, flush, run, unnamed, copyData, copyDone, copyFail } = client;
const SERIES = "select i, repeat('x', i) from generate_series(1, 5) i";
const COPY_IN = "copy relay_rows from stdin";

export const SCRIPTS: readonly Script[] = [
  script("a simple query", query("select 1 as one, null as nothing, 'text' as t")),
  script("an empty query", query(""), step([unnamed("")])),
  script("comments only", query("-- nothing"), query("/* nothing */;;")),
  script("several statements in one string", query("select 1; select 2; select 3")),
  script("several statements of which one fails", query("select 1; select 1/0; select 3")),
  script("a syntax error", query("selec 1"), query("select 1")),
  script("an error with position, detail and hint", query("select nothing from relay_rows")),
  script(
    "a constraint's error",
    query("insert into relay_rows values (1, null), (1, null)"),
    query("insert into relay_rows values (null, null)"),
  ),
  script("a notice", query("do $$ begin raise notice 'hello'; end $$")),
  script(
    "a parameter that is reported",
    query("set timezone = 'Asia/Tokyo'"),
    query("show timezone"),
  ),
  script(
    "a transaction by simple queries",
    query("begin"),
    query("insert into relay_rows values (1, 'a')"),
    query("select * from relay_rows"),
    query("rollback"),
  ),
  script(
    "a transaction that fails",
    query("begin"),
    query("select 1/0"),
    query("select 1"),
    query("commit"),
    query("select 1"),
  ),
  script(
    "savepoints",
    query("begin"),
    query("savepoint a"),
    query("select 1/0"),
    query("rollback to a"),
    query("select 1"),
    query("commit"),
  ),
  script("COMMIT AND CHAIN", query("begin"), query("commit and chain"), query("rollback")),
  script("COMMIT outside a transaction", query("commit")),
  script("the extended protocol", step([unnamed("select 1 as one")])),
  script("statements without a result", step([unnamed("create temp table relay_temp (id int)")])),
  script(
    "parameters",
    step([
      parse("", "select $1::int + 1, $2::text", [23, 25]),
      describeStatement(""),
      bind("", "", ["41", null]),
      describePortal(""),
      execute(""),
      sync(),
    ]),
  ),
  script(
    "a parameter that is no number",
    step([parse("", "select $1::int"), bind("", "", ["x"]), execute(""), sync()]),
    step([unnamed("select 1")]),
  ),
  script(
    "too few parameters",
    step([parse("", "select $1::int"), bind("", ""), execute(""), sync()]),
  ),
  script(
    "a Parse that fails",
    step([parse("", "select nothing"), bind("", ""), execute(""), sync()]),
    step([run("")]),
  ),
  script(
    "an Execute that fails, with more behind it",
    step([parse("", "select 1/0"), bind("", ""), execute(""), execute(""), sync()]),
    step([unnamed("select 1")]),
  ),
  script(
    "a pipeline with several Syncs",
    step([unnamed("select 1"), unnamed("select 1/0"), unnamed("select 3")], 3),
  ),
  script(
    "an implicit transaction of several statements that fails at its end",
    step([
      parse("", "insert into relay_rows values (1, 'a')"),
      bind("", ""),
      execute(""),
      parse("", "select 1/0"),
      bind("", ""),
      execute(""),
      sync(),
    ]),
    query("select count(*) from relay_rows"),
  ),
  script(
    "a transaction in one pipeline",
    step(
      [
        unnamed("begin"),
        unnamed("insert into relay_rows values (1, 'a')"),
        unnamed("select * from relay_rows"),
        unnamed("rollback"),
      ],
      4,
    ),
  ),
  script(
    "Flush in the middle",
    until("1", parse("", SERIES), flush()),
    until("T", bind("", ""), describePortal(""), flush()),
    step([execute(""), sync()]),
  ),
  script(
    "an error at a Flush, and messages behind it",
    until("E", parse("", "select nothing"), flush()),
    step([bind("", ""), execute(""), client.query("select 1"), sync()]),
    query("select 2"),
  ),
  script(
    "a portal read in parts",
    step([
      parse("", SERIES),
      bind("", ""),
      execute("", 2),
      execute("", 2),
      execute("", 2),
      execute("", 2),
      sync(),
    ]),
  ),
  script(
    "a portal of a transaction, across Syncs",
    query("begin"),
    step([parse("", SERIES), bind("p", ""), execute("p", 2), sync()]),
    step([execute("p", 2), sync()]),
    step([closePortal("p"), execute("p", 2), sync()]),
    query("rollback"),
  ),
  script(
    "a portal is gone behind its Sync",
    step([parse("", SERIES), bind("p", ""), execute("p", 2), sync()]),
    step([execute("p", 2), sync()]),
  ),
  script(
    "a cursor by SQL",
    query("begin"),
    query(`declare c cursor for ${SERIES}`),
    query("fetch 2 from c"),
    step([unnamed("fetch all from c")]),
    query("commit"),
  ),
  script(
    "a named statement used again and again",
    step([parse("s1", "select $1::int * 2"), describeStatement("s1"), sync()]),
    step([bind("", "s1", ["1"]), execute(""), sync()]),
    step([bind("", "s1", ["2"]), execute(""), bind("", "s1", ["3"]), execute(""), sync()]),
    step([closeStatement("s1"), sync()]),
    step([bind("", "s1", ["4"]), execute(""), sync()]),
  ),
  script(
    "more named statements than a server keeps for us",
    step([1, 2, 3, 4, 5].flatMap((n) => [parse(`s${n}`, `select ${n}`)]).concat(sync())),
    step(
      [5, 3, 1, 2, 4].map((n) => run(`s${n}`)),
      5,
    ),
    step([1, 2, 3, 4, 5].flatMap((n) => [bind("", `s${n}`), execute("")]).concat(sync())),
  ),
  script(
    "a name that is taken",
    step([parse("s1", "select 1"), sync()]),
    step([parse("s1", "select 2"), bind("", "s1"), execute(""), sync()]),
    step([run("s1")]),
  ),
  script(
    "a named statement parsed and used in one pipeline of many Syncs",
    step([parse("s1", "select 1"), sync(), run("s1"), closeStatement("s1"), sync(), run("s1")], 4),
  ),
  script(
    "a named statement whose Parse was skipped",
    step([unnamed("select nothing"), parse("s1", "select 1"), sync(), run("s1")], 3),
  ),
  script(
    "a skipped Parse of the same segment",
    step([parse("", "select nothing"), parse("s1", "select 1"), sync(), run("s1")], 2),
  ),
  script("a statement that is not there", step([run("nothing")]), step([run("")])),
  script(
    "a prepared write",
    query("begin"),
    step([parse("w", "insert into relay_rows values ($1, $2) returning *"), sync()]),
    step([bind("", "w", ["7", "seven"]), describePortal(""), execute(""), sync()]),
    query("rollback"),
  ),
  script(
    "DISCARD ALL and DEALLOCATE ALL",
    step([parse("s1", "select 1"), sync()]),
    query("deallocate all"),
    step([run("s1")]),
    step([parse("s1", "select 2"), run("s1")]),
    query("discard all"),
    step([parse("s1", "select 3"), run("s1")]),
  ),
  script(
    "DISCARD ALL with a pipeline behind it",
    step([parse("s1", "select 1"), sync()]),
    step([client.query("discard all"), parse("s1", "select 2"), run("s1"), run("s1")], 3),
  ),
  script(
    "PREPARE and EXECUTE in SQL, and a Bind to what they made",
    query("prepare by_sql as select 1 as one"),
    query("execute by_sql"),
    step([describeStatement("by_sql"), run("by_sql")]),
    step([closeStatement("by_sql"), sync()]),
    query("execute by_sql"),
  ),
  script(
    "COPY in by a Query",
    query("begin"),
    until("G", client.query(COPY_IN)),
    step([copyData("1\ta\n"), copyData("2\tb\n"), copyDone()]),
    query("rollback"),
  ),
  script(
    "COPY in without waiting",
    query("begin"),
    step([client.query(COPY_IN), copyData("1\ta\n"), copyDone(), client.query("rollback")], 2),
  ),
  script(
    "COPY in by the extended protocol, as libpq sends it",
    query("begin"),
    until("G", parse("", COPY_IN), bind("", ""), execute(""), sync()),
    step([copyData("1\ta\n"), copyDone(), sync()]),
    query("rollback"),
  ),
  script(
    "COPY in that the client gives up",
    until("G", client.query(COPY_IN)),
    step([copyData("1\ta\n"), copyFail("changed my mind")]),
    query("select 1"),
  ),
  script(
    "COPY in with bad data, which the client notices late",
    until("G", client.query(COPY_IN)),
    step([copyData("one\n"), copyData("2\tb\n"), copyDone()]),
    query("select 1"),
  ),
  script(
    "COPY in with bad data by the extended protocol",
    until("G", parse("", COPY_IN), bind("", ""), execute(""), sync()),
    step([copyData("one\n"), copyData("2\tb\n"), copyDone(), sync()]),
    query("select 1"),
  ),
  script(
    "COPY in of a table that is not there",
    query("copy nothing from stdin"),
    query("select 1"),
  ),
  script(
    "COPY out by both protocols",
    query(`copy (${SERIES}) to stdout`),
    step([unnamed(`copy (${SERIES}) to stdout`)]),
  ),
  script(
    "a row larger than anything is kept whole",
    query("select repeat('x', 300000) as x, 1 as one"),
    step([unnamed("select repeat('y', 300000) as y from generate_series(1, 3)")]),
  ),
  script(
    "large messages of the client's",
    query(`select length('${"x".repeat(200_000)}')`),
    step([
      parse("", "select length($1)"),
      bind("", "", ["y".repeat(300_000)]),
      execute(""),
      sync(),
    ]),
    step([
      parse("big", `select length('${"z".repeat(100_000)}')`),
      describeStatement("big"),
      run("big"),
    ]),
    step([run("big")]),
  ),
  script(
    "an error that quotes a large value",
    query(`select '${"x".repeat(100_000)}'::int`),
    query("select 1"),
  ),
  script(
    "malformed messages",
    step([parse("", "select 1").subarray(0, -2), sync()].map(lengthFixed)),
    query("select 1"),
  ),
];

/** The frame's length is made that of its bytes. */
function lengthFixed(frame: Uint8Array): Uint8Array {
  const fixed = frame.slice();
  new DataView(fixed.buffer).setInt32(1, fixed.length - 1);
  return fixed;
}
