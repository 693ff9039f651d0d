// How templates, fragments and nested queries become one numbered statement.
import { describe, expect, test } from "bun:test";
import type { Statement } from "../../sdk/src/fragment.ts";
import { Fragment, standFor } from "../../sdk/src/fragment.ts";
import { Query } from "../../sdk/src/query.ts";

function sql(strings: TemplateStringsArray, ...values: unknown[]): Fragment {
  return new Fragment(strings, values);
}

function refuseToRun(): never {
  throw new Error("an interpolated query must not run");
}

const cases: [title: string, fragment: Fragment, statement: Statement][] = [
  ["a template without values", sql`select 1`, { text: "select 1", params: [] }],
  [
    "equal values are separate parameters",
    sql`select ${1}, ${1}`,
    { text: "select $1, $2", params: ["1", "1"] },
  ],
  [
    "a nested fragment continues the numbers",
    sql`select ${1} where ${sql`a = ${2} and ${sql`b = ${3}`}`} limit ${4}`,
    { text: "select $1 where a = $2 and b = $3 limit $4", params: ["1", "2", "3", "4"] },
  ],
  [
    "one fragment in two places gives its parameters twice",
    ((active: Fragment) => sql`select ${active} or ${active}`)(sql`a = ${true}`),
    { text: "select a = $1 or a = $2", params: ["true", "true"] },
  ],
  ["an empty fragment leaves nothing", sql`select 1${sql``}`, { text: "select 1", params: [] }],
  [
    "a digit behind a placeholder does not become part of its number",
    sql`select ${1}0 ${sql`${2}`}${sql`3`}`,
    { text: "select $1 0 $2 3", params: ["1", "2"] },
  ],
  [
    "a name before a placeholder does not swallow it",
    sql`select a${1}, é${2}, ${3}${4}`,
    { text: "select a $1, é $2, $3 $4", params: ["1", "2", "3", "4"] },
  ],
  [
    "signs next to a placeholder stay where they are",
    sql`select (${1})::int, -${2}+1, x=${3}`,
    { text: "select ($1)::int, -$2+1, x=$3", params: ["1", "2", "3"] },
  ],
];

describe("statement", () => {
  test.each(cases)("%s", (_title, fragment, statement) => {
    expect(fragment.toStatement()).toEqual(statement);
  });

  test("a template query joins another template without running", () => {
    const inner = new Query(sql`select id from t where a = ${1}`, refuseToRun);

    expect(sql`delete from u where b = ${2} and id in (${inner})`.toStatement()).toEqual({
      text: "delete from u where b = $1 and id in (select id from t where a = $2)",
      params: ["2", "1"],
    });
  });

  test("a text query is refused inside a template", () => {
    const inner = new Query(null, refuseToRun);

    expect(() => sql`select ${0}, ${inner}`).toThrow(
      "the value at index 1 is a db.query(), whose $n cannot be renumbered; use a template",
    );
  });

  test("an object of another library that stands for nothing is refused", () => {
    class Foreign {
      readonly text = "now()";
    }
    const known = new Foreign();
    standFor(known, sql`now()`);

    expect(sql`select ${known}`.toStatement().text).toBe("select now()");
    expect(() => sql`select ${new Foreign()}`).toThrow(
      "the parameter at index 0 cannot be sent: it is a class instance without toJSON()",
    );
  });

  test("values are taken when the fragment is made", () => {
    const values = [1, 2];
    const fragment = sql`select ${values}`;

    values.push(3);

    expect(fragment.toStatement().params).toEqual(['{"1","2"}']);
  });
});
