// The statements that every door must answer alike, and the tables that they work on.
import type { Cell, SqlStatement } from "./sql-outcome.ts";

export interface SqlCase extends SqlStatement {
  readonly title: string;
  /** The text has a placeholder without a parameter, or an answer that tells how it was asked. */
  readonly differsByMode?: true;
}

/** Run once, as the role `app`. The tables `people` and `pets` are never written afterwards. */
export const SQL_SCHEMA = `
create type mood as enum ('sad', 'ok', 'happy');
create type spot as (x integer, label text);
create domain positive as integer check (value > 0);
create table people (id integer primary key, name text, mood mood, born date, parent integer);
insert into people values (1, 'Ada', 'happy', '1815-12-10', null), (2, 'it''s', 'ok', null, 1), (3, null, 'sad', '2000-02-29', 1);
create table pets (id integer primary key, owner integer references people, name text);
insert into pets values (1, 1, 'Rex'), (2, 1, 'Mia');
create table items (id integer primary key, name text not null, price numeric(8, 2) check (price >= 0), amount positive);
create table parts (id serial primary key, item integer not null references items, code varchar(4) unique);
create view cheap as select id, name from items where price < 10;
analyze people, pets`;

/** Before each statement that writes. */
export const SQL_RESET = `
drop table if exists made;
truncate items, parts restart identity;
insert into items values (1, 'nail', 0.05, 100), (2, 'saw', 19.90, 3), (3, 'glue', null, null);
insert into parts (item, code) values (1, 'a'), (2, 'b')`;

/** One row that tells everything a statement may have left behind. */
export const SQL_EFFECTS = `select
  (select json_agg(i order by i.id) from items i)::text as items,
  (select json_agg(p order by p.id) from parts p)::text as parts,
  (select last_value::text from parts_id_seq) as sequence,
  (select array_agg(a.attname || ' ' || a.atttypid::regtype order by a.attnum)::text
    from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relname = 'made' and a.attnum > 0) as made`;

function sql(title: string, text: string, ...params: readonly Cell[]): SqlCase {
  return { title, text, params };
}

/** Nothing is written: most of these may run on a replica. */
export const READS: readonly SqlCase[] = [
  sql(
    "integers of three sizes",
    "select 32767::int2 a, (-2147483648)::int4 b, 9223372036854775807 c",
  ),
  sql(
    "numeric with NaN and infinity",
    "select 12345678901234567890.0123456789::numeric, 'NaN'::numeric, '-Infinity'::numeric, 1.50::numeric(4, 2)",
  ),
  sql(
    "floats",
    "select 0.1::float4, 1e300::float8, 'NaN'::float8, '-Infinity'::float4, -0.0::float8, $1::float8",
    "0.30000000000000004",
  ),
  sql("booleans and NULL", "select true, false, null::bool, null, $1::bool, $2::text", "yes", null),
  sql(
    "text with quotes, backslashes, line feeds and characters beyond the first plane",
    "select $1::text, length($1), 'plain ''quoted'' \\ ü 🐘'",
    `it's "odd" \\ \t\n ünï 🐘 {,}`,
  ),
  sql("empty text beside NULL", "select ''::text, $1::text, $2::text", "", null),
  sql("bytea", "select '\\x00ff80'::bytea, ''::bytea, $1::bytea", "\\xdeadbeef"),
  sql(
    "json and jsonb",
    `select '{"b": 1, "a": [1, null]}'::json, $1::jsonb, 'null'::jsonb`,
    `{"z": 1e3, "a": "\\u00fc"}`,
  ),
  sql(
    "arrays with NULL, quotes, nesting and bounds",
    `select array[1, null, 3], array[['a', 'b"c'], ['{', null]], '[0:1]={1,2}'::int[], '{}'::text[], $1::text[]`,
    `{"x y",NULL,"\\"q\\""}`,
  ),
  sql("an array as a parameter", "select name from people where id = any($1) order by id", "{1,3}"),
  sql(
    "ranges and multiranges",
    "select int4range(1, 5), 'empty'::daterange, '[2026-01-01,)'::tstzrange, '{[1,2),[5,6)}'::int4multirange",
  ),
  sql(
    "dates and times",
    "select timestamptz '2026-11-30 12:34:56.789+02', timestamp 'infinity', date '4713-01-01 BC', time '24:00', timetz '01:02:03+05:30', $1::timestamptz",
    "1999-12-31 23:59:59.999999Z",
  ),
  sql("intervals", "select interval '1 year 2 mons -3 days 04:05:06.7', interval '0'"),
  sql(
    "uuid, inet, bits, money and oid types",
    "select '00000000-0000-4000-8000-00000000000f'::uuid, '::1/64'::inet, b'101', 12.5::money, 'people'::regclass::text, '0/16B3748'::pg_lsn",
  ),
  sql(
    "an enum, a composite, a domain and a table's row",
    "select mood, row(1, 'a b')::spot, 3::positive, p from people p where mood > $1 order by id",
    "sad",
  ),
  sql(
    "geometry and text search",
    "select point(1, 2), box '((0,0),(1,1))', array[box '((0,0),(1,1))'], to_tsvector('simple', 'a b a')",
  ),
  sql("a result without rows", "select id, name from people where false"),
  sql("a result without columns", "select"),
  sql("rows without columns", "select from people"),
  sql(
    "column names that repeat, are empty of letters or need quotes",
    `select 1 as a, 2 as a, 3 as "Ä ""b""", 4 as "__proto__", 5`,
  ),
  sql("VALUES", "values (1, 'a'), (2, null), ($1, 'c')", "3"),
  sql("TABLE", "table people"),
  sql(
    "a join with grouping and a window",
    "select p.name, count(*), rank() over (order by count(*) desc) from people p left join pets on owner = p.id group by p.id order by p.id",
  ),
  sql(
    "a recursive query",
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < $1::int) select sum(i) from n",
    "100",
  ),
  sql(
    "1,000 rows",
    "select g, md5(g::text), case when g % 7 = 0 then null else repeat('x', g % 50) end from generate_series(1, 1000) g",
  ),
  sql("a text of 100 KB", "select repeat('ü', 51200) || $1", "end"),
  sql(
    "200 columns",
    `select ${Array.from({ length: 200 }, (_, index) => `${index} as c${index}`).join(", ")}`,
  ),
  sql("EXPLAIN", "explain (costs off) select * from people where name = 'Ada'"),
  sql("SHOW", "show transaction_isolation"),
  sql(
    "a setting",
    "select current_setting('client_encoding'), current_setting('datestyle'), current_setting('search_path')",
  ),
  sql("an empty text", ""),
  sql("a semicolon", " ; "),
  sql("only a comment", "/* nothing /* nested */ */ -- at all"),
  sql("comments and a semicolon around a statement", "-- first\nselect /* in */ 1 as one; -- last"),
  sql("a division by zero", "select 1 / 0"),
  sql("a division by zero behind rows", "select 10 / (3 - g) from generate_series(1, 5) g"),
  sql("a parameter that is no integer", "select $1::int + 1", "12x"),
  sql("a literal that is no date", "select date '2026-02-30'"),
  sql("a number out of range", "select 70000::int2"),
  sql("a table that is missing", "select * from missing"),
  sql("a column that is missing, with a hint", "select nam from people"),
  sql("a column of a table that is not joined", "select pets.name from people"),
  sql("an ambiguous column", "select id from people, pets"),
  sql("a function that is missing", "select missing(1, 'a')"),
  sql("an operator that is missing", "select point(1, 2) + true"),
  sql("a column outside GROUP BY", "select name, count(*) from people"),
  sql("a subquery with more than one row", "select (select id from people)"),
  sql("an enum value that is missing", "select $1::mood", "angry"),
  sql("a domain that is violated", "select (-1)::positive"),
  sql("json that is malformed, with its context", "select $1::json", `{"a": tru}`),
  sql("a regular expression that is invalid", "select 'a' ~ '('"),
  sql("a table without permission", "select rolname from pg_authid"),
  { ...sql("a placeholder without a parameter", "select $1::int"), differsByMode: true },
  { ...sql("a parameter whose type is not known", "select $1 is null", null), differsByMode: true },
];

/** Run on fresh contents each. */
export const WRITES: readonly SqlCase[] = [
  sql("INSERT", "insert into items values (4, 'tape', 2.50, 7)"),
  sql(
    "INSERT of several rows with RETURNING",
    "insert into items (id, name) values ($1, $2), (5, 'e') returning *, price is null as free",
    "4",
    `it's`,
  ),
  sql(
    "INSERT from a query that gives nothing",
    "insert into items select * from items where false",
  ),
  sql("INSERT with a default", "insert into parts (item, code) values (1, 'c') returning id"),
  sql(
    "INSERT with ON CONFLICT",
    "insert into items values (1, 'bolt', 1, 1) on conflict (id) do update set name = excluded.name returning id, name",
  ),
  sql("UPDATE", "update items set price = price * 2 where price < $1", "10"),
  sql(
    "UPDATE with RETURNING of old and new values",
    "update items set amount = amount + 1 where amount is not null returning old.amount, new.amount",
  ),
  sql("UPDATE of nothing", "update items set name = 'x' where false"),
  sql("DELETE with RETURNING", "delete from parts where code = $1 returning *", "a"),
  sql(
    "MERGE with RETURNING",
    `merge into items i using (values (1, 'x'), (9, 'y')) v(id, name) on i.id = v.id
       when matched then update set name = v.name
       when not matched then insert (id, name) values (v.id, v.name)
       returning merge_action(), i.id, i.name`,
  ),
  sql(
    "MERGE",
    "merge into items i using (values (3)) v(id) on i.id = v.id when matched then delete",
  ),
  sql(
    "a SELECT over a writing CTE",
    "with gone as (delete from parts where item = $1 returning *) select count(*) from gone",
    "2",
  ),
  sql("SELECT FOR UPDATE", "select id from items order by id for update"),
  sql("nextval", "select nextval('parts_id_seq')"),
  sql("a view", "select * from cheap order by id"),
  sql(
    "EXPLAIN ANALYZE of a write",
    "explain (analyze, costs off, timing off, summary off, buffers off) delete from parts",
  ),
  sql("TRUNCATE", "truncate parts restart identity"),
  sql("CREATE TABLE", "create table made (a integer primary key, b text)"),
  sql("CREATE TABLE AS", "create table made as select id, name from items"),
  sql("SELECT INTO", "select id into made from items"),
  sql(
    "CREATE TABLE IF NOT EXISTS of one that is there",
    "create table if not exists items (other integer)",
  ),
  sql("DROP TABLE IF EXISTS of one that is missing", "drop table if exists made"),
  sql("COMMENT", "comment on table items is 'it''s a table'"),
  sql("VACUUM", "vacuum parts"),
  sql("ANALYZE", "analyze items"),
  sql("a table that is there already", "create table items (a integer)"),
  sql("a table that others depend on", "drop table items"),
  sql("a duplicate key, with its detail", "insert into items values (2, 'again', 1, 1)"),
  sql("a missing foreign key, with its detail", "insert into parts (item) values ($1)", "77"),
  sql("a foreign key that is still referenced", "delete from items where id = 1"),
  sql("a missing value", "insert into items (id) values (8)"),
  sql("a check that is violated", "update items set price = -1"),
  sql("a domain that is violated in a column", "update items set amount = $1", "0"),
  sql("a text that is too long", "insert into parts (item, code) values (1, 'abcde')"),
  sql("a numeric that overflows", "update items set price = 1234567"),
  sql("a column that is missing in an UPDATE", "update items set cost = 1"),
  sql("too few values, with a position", "insert into items (id, name) values (1)"),
  sql(
    "a cardinality violation in ON CONFLICT",
    "insert into items values (6, 'a'), (6, 'b') on conflict (id) do update set name = 'c'",
  ),
];

/** Each on a connection of its own: they change the session, or the gateway cannot know that they do not, as with long texts. */
export const SESSION_STATEMENTS: readonly SqlCase[] = [
  sql("a parameter of 100 KB", "select length($1), md5($1), $1::text", "0123456789".repeat(10_240)),
  sql("SET", "set statement_timeout = '5s'"),
  sql("SET of an invalid value", "set statement_timeout = 'soon'"),
  sql("SET of a parameter that is missing", "set no_such_setting = 1"),
  sql("RESET", "reset statement_timeout"),
  sql("set_config", "select set_config('app.user', $1, false)", "ada"),
  sql("DO", "do $$ begin perform 1; end $$"),
  sql(
    "DO that raises an error with all its fields",
    `do $$ begin
       raise exception 'stop' using errcode = 'P0001', detail = 'a detail', hint = 'a hint',
         column = 'c', constraint = 'k', datatype = 'd', table = 't', schema = 's';
     end $$`,
  ),
  sql("DO that writes", "do $$ begin update items set name = 'done' where id = 1; end $$"),
  sql("a temporary table", "create temporary table scratch (a integer)"),
  sql("LISTEN", "listen news"),
  sql("NOTIFY", "notify news, 'it''s here'"),
  sql("an advisory lock", "select pg_advisory_lock(1)"),
  sql("PREPARE", "prepare mine as select 1"),
  sql("EXECUTE of a statement that is missing", "execute missing"),
  sql("DEALLOCATE of a statement that is missing", "deallocate missing"),
  sql("BEGIN", "begin"),
  sql("COMMIT outside a transaction", "commit"),
  sql("ROLLBACK outside a transaction", "rollback"),
  sql("SAVEPOINT outside a transaction", "savepoint a"),
  sql("a cursor outside a transaction", "declare c cursor for select 1"),
  sql("LOCK outside a transaction", "lock table items"),
  sql("DISCARD", "discard temp"),
  sql("a syntax error", "selec 1"),
  sql("a syntax error at the end", "select * from"),
  sql("a quote that is not closed", "select 'abc"),
];
