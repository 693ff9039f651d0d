// Whatever pipelines of texts that both know: a simulated server answers as the model of a session does, which was held against PostgreSQL.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { concatBytes } from "#pool/wire/message-types.ts";
import { ModelServer } from "#test/support/model-server.ts";
import { client, describeReplies } from "#test/support/wire-frames.ts";
import { ServerBench } from "./server-bench.ts";

const text = fc.constantFrom(
  "BEGIN",
  "COMMIT",
  "ROLLBACK",
  "RESET ALL",
  "SET application_name TO 'x'",
  "selec",
);
/** By a simple Query only: of a portal that has given its rows the simulated server gives them again. */
const queryText = fc.oneof(
  text,
  fc.constantFrom("", "SELECT pg_catalog.set_config('application_name', E'y', false)"),
);
const statementName = fc.constantFrom("", "a", "b");
const portalName = fc.constantFrom("", "p");

/** Describe is not among them: in a failed block the model describes less than PostgreSQL. */
const message = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(statementName, text).map(([name, sql]) => client.parse(name, sql)),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(portalName, statementName)
      .map(([portal, name]) => client.bind(portal, name)),
  },
  { weight: 4, arbitrary: portalName.map((portal) => client.execute(portal)) },
  { weight: 1, arbitrary: statementName.map((name) => client.closeStatement(name)) },
  { weight: 1, arbitrary: portalName.map((portal) => client.closePortal(portal)) },
  { weight: 1, arbitrary: fc.constant(client.flush()) },
);

const segment = fc.oneof(
  queryText.map((sql) => client.query(sql)),
  fc
    .tuple(statementName, text)
    .map(([name, sql]) =>
      concatBytes([client.closeStatement(name), client.parse(name, sql), client.run(name)]),
    ),
  fc
    .array(message, { minLength: 1, maxLength: 8 })
    // A simple Query ends the unnamed portal, which the model does not know: here it never outlives its pipeline.
    .map((messages) => concatBytes([client.closePortal(""), ...messages, client.sync()])),
);

/** Values, texts of errors and reports of settings are not the model's business. */
function comparable(replies: readonly string[]): string[] {
  return replies
    .filter((line) => !line.startsWith("S "))
    .map((line) => (line.startsWith("E ") ? line.slice(0, 7) : line))
    .map((line) => (line.startsWith("D ") ? "D" : line));
}

test("pipelines are answered alike", () => {
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 8 }), (segments) => {
      const answers: Uint8Array[] = [];
      const model = new ModelServer((bytes) => answers.push(bytes));
      for (const bytes of segments) model.receive(bytes);

      const simulated = new ServerBench().login().ask(...segments);

      expect(comparable(simulated)).toEqual(comparable(describeReplies(concatBytes(answers))));
    }),
    { numRuns: 300 },
  );
});
